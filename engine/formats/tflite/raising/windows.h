// Strides, dilations and paddings of convolutions and pools.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_WINDOWS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_WINDOWS_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/raising/node_raiser.h"
#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::formats::tflite_raising {

// A sliding window over an image [batch, height, width, channels]. Index 0 is
// the height, 1 the width.
struct Window {
  std::array<int64_t, 2> size = {1, 1};
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> dilation = {1, 1};
  // As much is added in front as behind, or one less: the output has the size
  // of the input divided by the stride.
  bool same_padding = false;
  // Otherwise: rows and columns that are added.
  std::array<int64_t, 2> before = {0, 0};
  std::array<int64_t, 2> after = {0, 0};

  bool pads() const {
    return before[0] != 0 || before[1] != 0 || after[0] != 0 || after[1] != 0;
  }
  // Turns added rows and columns into same_padding where that means the same
  // on an input of this shape.
  void PreferSame(const graph::PartialShape& input);
  void SetOptions(OperatorOptions* options) const;
};

// Reads a node's attributes strides, dilations, padding, explicit_paddings; not
// the size.
// ERRORS: Unimplemented for NCHW, and for steps along batch or channels.
absl::StatusOr<Window> ReadWindow(const tensorflow::NodeDef& def);

// Takes a Pad in front of the node, which nobody else reads, into the window:
// *input becomes what the Pad reads. Only where the padding is same_padding on
// that input then.
void AbsorbPad(const NodeRaiser& node, Window* window, graph::Endpoint* input);

// The tensor with the window's rows and columns around it, as zeros or (lowest)
// as what no maximum takes; the window is then without padding.
TensorId PadFor(NodeRaiser& node, TensorId input, bool lowest, Window* window);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_WINDOWS_H_
