// How small a file becomes when a package or a download compresses it.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_COMPRESSED_SIZE_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_COMPRESSED_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::optimize {

// UNITS: bytes of the gzip file (level 6, its default) that holds `bytes`.
// ERRORS: ResourceExhausted when memory for the packing is not to be had.
absl::StatusOr<int64_t> GzipSize(absl::string_view bytes);

// UNITS: bytes of the zstd file (level 3, its default) that holds `bytes`.
// ERRORS: as above.
absl::StatusOr<int64_t> ZstdSize(absl::string_view bytes);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_COMPRESSED_SIZE_H_
