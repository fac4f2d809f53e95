// Early return on a failed absl::Status or StatusOr, and a way to say what was
// being done when it failed.
//
//   OPTFARM_RETURN_IF_ERROR(WriteAll(path, bytes));
//   OPTFARM_ASSIGN_OR_RETURN(Graph graph, LoadGraph(path));
//   return Annotate(status, absl::StrCat("while loading '", path, "'"));

#ifndef OPTFARM_BASE_STATUS_MACROS_H_
#define OPTFARM_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// Returns `status` with "`what`: " before its message; OK stays OK. Keeps the
// code and the payloads.
absl::Status Annotate(const absl::Status& status, absl::string_view what);

}  // namespace optfarm

#define OPTFARM_RETURN_IF_ERROR(expression)                                   \
  do {                                                                        \
    if (absl::Status optfarm_status_ = (expression); !optfarm_status_.ok()) { \
      return optfarm_status_;                                                 \
    }                                                                         \
  } while (false)

#define OPTFARM_STATUS_CONCAT_IMPL_(a, b) a##b
#define OPTFARM_STATUS_CONCAT_(a, b) OPTFARM_STATUS_CONCAT_IMPL_(a, b)
#define OPTFARM_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                           \
  if (!result.ok()) return std::move(result).status();                  \
  declaration = *std::move(result)
#define OPTFARM_ASSIGN_OR_RETURN(declaration, expression)               \
  OPTFARM_ASSIGN_OR_RETURN_IMPL_(                                       \
      OPTFARM_STATUS_CONCAT_(optfarm_statusor_, __LINE__), declaration, \
      expression)

#endif  // OPTFARM_BASE_STATUS_MACROS_H_
