// The data files a user sends: .npy, pictures and sounds. The first byte picks
// the reader.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/formats/image.h"
#include "engine/formats/npy.h"
#include "engine/formats/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1),
                                size - 1);
  switch (data[0] % 3) {
    case 0:
      (void)optfarm::formats::ParseNpy(bytes, "fuzz");
      break;
    case 1:
      (void)optfarm::formats::DecodeImage(bytes, 3);
      break;
    default:
      (void)optfarm::formats::ParseWav(bytes);
  }
  return 0;
}
