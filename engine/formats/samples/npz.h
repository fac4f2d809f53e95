// NumPy's .npz archives: a ZIP file whose members are .npy files, stored or
// deflated.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_NPZ_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {

// One array of an archive, found in the archive's directory.
struct NpzMember {
  // Without the ".npy" at its end.
  std::string name;
  // UNITS: bytes of the .npy file, packed and unpacked.
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  bool deflated = false;
  // Where the member's own header begins in the archive.
  uint64_t offset = 0;
};

// The archive's arrays in its order; members that are no .npy are left out.
// ERRORS: InvalidArgument for bytes that are no ZIP file or a damaged one;
// Unimplemented for archives over 4 GiB, encryption or other compression.
absl::StatusOr<std::vector<NpzMember>> ListNpz(absl::string_view bytes);

// The bytes of one member's .npy file.
// ERRORS: InvalidArgument for damaged content or one that is not as large as
// the directory says; ResourceExhausted above `max_bytes`.
absl::StatusOr<std::string> ReadNpzMember(absl::string_view bytes,
                                          const NpzMember& member,
                                          uint64_t max_bytes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_NPZ_H_
