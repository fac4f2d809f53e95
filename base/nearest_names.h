// "Did you mean": the known names nearest to one that was not found.

#ifndef OPTFARM_BASE_NEAREST_NAMES_H_
#define OPTFARM_BASE_NEAREST_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm {

// Returns up to `most` of `known`, nearest first by edit distance, case
// ignored; names that contain `wanted` count as near. Names further away than
// half their length are left out. Ties keep the order of `known`.
// The work is bounded: of very long lists and names only a beginning is
// compared.
std::vector<std::string> NearestNames(absl::string_view wanted,
                                      absl::Span<const std::string> known,
                                      size_t most);

// "; the nearest are 'a', 'b'" for the end of a message, or "".
std::string NearestNamesHint(absl::string_view wanted,
                             absl::Span<const std::string> known,
                             size_t most = 3);

}  // namespace optfarm

#endif  // OPTFARM_BASE_NEAREST_NAMES_H_
