// Windows that slide over depth, height and width: what convolution and
// pooling of volumes share.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW3D_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW3D_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/nn/window.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct Window3dAttrs {
  Padding padding = Padding::kValid;
  bool is_ncdhw = false;
  std::array<int64_t, 3> strides = {1, 1, 1};
  std::array<int64_t, 3> dilations = {1, 1, 1};
  // Of pooling; convolution's comes from the filter.
  std::array<int64_t, 3> size = {1, 1, 1};
};

// Reads strides, padding, data_format, dilations, ksize.
// ERRORS: InvalidArgument for values out of range; Unimplemented for steps over
// batch or channels.
absl::StatusOr<Window3dAttrs> ReadWindow3dAttrs(
    const tensorflow::NodeDef& node);

struct Window3d {
  std::array<WindowAxis, 3> axes;
  // Cells of the window.
  int64_t cells() const { return axes[0].size * axes[1].size * axes[2].size; }
};

// REQUIRES: both have three values.
absl::StatusOr<Window3d> PlaceWindow3d(const Window3dAttrs& attrs,
                                       absl::Span<const int64_t> in,
                                       absl::Span<const int64_t> size);

// Calls body(cell, position) for each cell of the window of output (z, y, x)
// that lies inside; position counts input places over depth, height and width.
template <typename Body>
void ForEachCell(const Window3d& window, const std::array<int64_t, 3>& out,
                 const Body& body) {
  const auto& [az, ay, ax] = window.axes;
  for (int64_t kz = 0; kz < az.size; ++kz) {
    const int64_t z = out[0] * az.stride - az.pad_before + kz * az.dilation;
    if (z < 0 || z >= az.in) continue;
    for (int64_t ky = 0; ky < ay.size; ++ky) {
      const int64_t y = out[1] * ay.stride - ay.pad_before + ky * ay.dilation;
      if (y < 0 || y >= ay.in) continue;
      for (int64_t kx = 0; kx < ax.size; ++kx) {
        const int64_t x = out[2] * ax.stride - ax.pad_before + kx * ax.dilation;
        if (x < 0 || x >= ax.in) continue;
        body((kz * ay.size + ky) * ax.size + kx, (z * ay.in + y) * ax.in + x);
      }
    }
  }
}

// Between NCDHW and NDHWC. REQUIRES: rank 5.
absl::StatusOr<Tensor> NcdhwToNdhwc(const Tensor& tensor, ThreadPool* pool);
absl::StatusOr<Tensor> NdhwcToNcdhw(const Tensor& tensor, ThreadPool* pool);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW3D_H_
