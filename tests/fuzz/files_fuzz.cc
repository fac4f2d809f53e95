// The data files a user sends: .npy, pictures, sounds and records. The first
// byte picks the reader.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/formats/files/tfrecord.h"
#include "engine/formats/samples/image.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/samples/wav.h"

namespace {

void ReadRecords(absl::string_view bytes) {
  const auto file =
      optfarm::formats::RecordFile::FromBytes(std::string(bytes), "fuzz");
  for (int64_t i = 0; file.ok() && i < file->size(); ++i) {
    (void)file->Read(i);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1),
                                size - 1);
  switch (data[0] % 4) {
    case 0:
      (void)optfarm::formats::ParseNpy(bytes, "fuzz");
      break;
    case 1:
      (void)optfarm::formats::DecodeImage(bytes, 3);
      break;
    case 2:
      (void)optfarm::formats::ParseWav(bytes);
      break;
    default:
      ReadRecords(bytes);
  }
  return 0;
}
