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
  // They lie in a mapped file: pages that are let go are read from it again.
  bool is_mapped_file = false;
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_SHARED_BYTES_H_
