#include "engine/runtime/reference/arrays/update.h"

#include <algorithm>

#include "base/status_macros.h"
#include "engine/runtime/reference/dtype_switch.h"

namespace optfarm::runtime {

absl::StatusOr<Tensor> WritableCopy(const Tensor& value,
                                    absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor copy,
                           Tensor::Allocate(value.dtype(), value.shape()));
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(value.dtype(), name, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::copy_n(value.data<T>(), value.num_elements(), copy.data<T>());
        return absl::OkStatus();
      }));
  return copy;
}

}  // namespace optfarm::runtime
