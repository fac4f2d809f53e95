// Recurrent layers over a sequence. The format's operators for them keep state
// between runs, so exporters write the steps instead; a layer that comes here
// has kept its own form because that could not be done.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

absl::Status RefuseLayer(NodeRaiser& node) {
  const graph::PartialShape& x = node.ShapeOfInput(0);
  OPTFARM_ASSIGN_OR_RETURN(const bool is_time_major,
                           graph::GetBoolOr(node.def(), "time_major", true));
  const int64_t steps = x.has_rank() && x.rank() == 3
                            ? x.dim(is_time_major ? 0 : 1)
                            : graph::kUnknownDim;
  if (steps > 0 && x.is_static()) {
    return absl::UnimplementedError(absl::StrCat(
        "recurrent layers are written as steps, at most 512, and it has ",
        steps));
  }
  return absl::FailedPreconditionError(
      "the length of its sequence or its sizes are not known");
}

constexpr RaisingRow kRows[] = {
    {"LstmSequence", RefuseLayer},
    {"GruSequence", RefuseLayer},
    {"RnnSequence", RefuseLayer},
    {"LiteLstmSequence", RefuseLayer},
};

}  // namespace

absl::Span<const RaisingRow> RecurrentRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
