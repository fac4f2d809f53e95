// Pools over windows of pictures.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/formats/onnx/raising/window_attributes.h"

namespace optfarm::formats {
namespace {

absl::Status Pool(NodeRaiser& n, int spatial_rank) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(OnnxWindow window, ReadWindow(n, 0, spatial_rank));
  OPTFARM_ASSIGN_OR_RETURN(window.size, SpatialEntries(n, "ksize", spatial_rank,
                                                       window.order.empty()));
  n.Set(n.Emit(n.onnx_op(), {n.In(0, window.order)}, WindowAttributes(window)),
        window.order);
  return absl::OkStatus();
}

absl::Status Pool2D(NodeRaiser& n) { return Pool(n, 2); }
absl::Status Pool3D(NodeRaiser& n) { return Pool(n, 3); }

constexpr RaisingRow kRows[] = {
    // Like TensorFlow, ONNX does not count what was padded in an average.
    {"AvgPool", Pool2D, "AveragePool"},
    {"AvgPool3D", Pool3D, "AveragePool"},
    {"MaxPool", Pool2D, "MaxPool"},
    {"MaxPool3D", Pool3D, "MaxPool"},
};

}  // namespace

absl::Span<const RaisingRow> PoolingRaisings() { return kRows; }

}  // namespace optfarm::formats
