// Bytes that stay where they are, unchanged, as long as somebody keeps them.

#ifndef OPTFARM_BASE_SHARED_BYTES_H_
#define OPTFARM_BASE_SHARED_BYTES_H_

#include <memory>

#include "absl/strings/string_view.h"

namespace optfarm {

// OWNERSHIP: `bytes` are valid while a copy of `owner` is held.
struct SharedBytes {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;
  // The whole of the mapped file that they lie in; empty when they lie
  // elsewhere. Its pages may be let go: they are read from the file again.
  absl::string_view mapped_file = {};
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_SHARED_BYTES_H_
