// Reads and pads windows.

#include "engine/formats/tflite/raising/windows.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;
using tflite::TensorType;

// Numbers for batch, height, width and channels.
absl::StatusOr<std::array<int64_t, 2>> ReadSpatial(
    const tensorflow::NodeDef& def, absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> numbers,
      graph::GetIntsOr(def, name, std::vector<int64_t>{1, 1, 1, 1}));
  if (numbers.size() != 4 || numbers[0] != 1 || numbers[3] != 1) {
    return absl::UnimplementedError(absl::StrCat(
        "its ", name, " must be 1 along batch and channels, of 4 numbers"));
  }
  if (numbers[1] < 1 || numbers[2] < 1 || numbers[1] > (1 << 20) ||
      numbers[2] > (1 << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its ", name, " are out of range"));
  }
  return std::array<int64_t, 2>{numbers[1], numbers[2]};
}

// What SAME adds in front and behind.
std::pair<int64_t, int64_t> SamePadding(int64_t input, int64_t window,
                                        int64_t stride) {
  const int64_t output = (input + stride - 1) / stride;
  const int64_t total =
      std::max<int64_t>((output - 1) * stride + window - input, 0);
  return {total / 2, total - total / 2};
}

}  // namespace

void Window::PreferSame(const graph::PartialShape& input) {
  if (same_padding || !pads() || !input.has_rank() || input.rank() != 4) return;
  for (int i = 0; i < 2; ++i) {
    const int64_t length = input.dim(i + 1);
    if (length < 0) return;
    const int64_t span = (size[i] - 1) * dilation[i] + 1;
    if (SamePadding(length, span, stride[i]) !=
        std::pair(before[i], after[i])) {
      return;
    }
  }
  same_padding = true;
  before = after = {0, 0};
}

void Window::SetOptions(OperatorOptions* options) const {
  options->same_padding = same_padding;
  options->stride_h = static_cast<int>(stride[0]);
  options->stride_w = static_cast<int>(stride[1]);
  options->dilation_h = static_cast<int>(dilation[0]);
  options->dilation_w = static_cast<int>(dilation[1]);
  options->window_h = static_cast<int>(size[0]);
  options->window_w = static_cast<int>(size[1]);
}

absl::StatusOr<Window> ReadWindow(const tensorflow::NodeDef& def) {
  if (!graph::IsNhwc(def)) {
    return absl::UnimplementedError(absl::StrCat("its data_format is ",
                                                 graph::DataFormatText(def),
                                                 "; the format has NHWC only"));
  }
  Window window;
  OPTFARM_ASSIGN_OR_RETURN(window.stride, ReadSpatial(def, "strides"));
  OPTFARM_ASSIGN_OR_RETURN(window.dilation, ReadSpatial(def, "dilations"));
  // Layers of other frameworks have none.
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           graph::GetStringOr(def, "padding", "VALID"));
  OPTFARM_ASSIGN_OR_RETURN(const graph::Padding padding,
                           graph::ParsePadding(text));
  window.same_padding = padding == graph::Padding::kSame;
  if (padding == graph::Padding::kExplicit) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                             graph::GetInts(def, "explicit_paddings"));
    if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[6] != 0 ||
        pads[7] != 0 || std::any_of(pads.begin(), pads.end(), [](int64_t pad) {
          return pad < 0 || pad > (1 << 20);
        })) {
      return absl::InvalidArgumentError(
          "its explicit_paddings must be 8 numbers, 0 for batch and channels");
    }
    window.before = {pads[2], pads[4]};
    window.after = {pads[3], pads[5]};
  }
  return window;
}

void AbsorbPad(const NodeRaiser& node, Window* window, graph::Endpoint* input) {
  const GraphView& view = node.view();
  const graph::Node& pad = view.graph().node(input->node);
  if (window->same_padding || window->pads() || view.IsInput(*input) ||
      view.IsOutput(*input) || !graph::HasRole(pad.op(), graph::OpRole::kPad) ||
      pad.inputs().size() != 2 || view.ReadersOf(*input).size() != 1) {
    return;
  }
  const auto pads = view.KnownNumbers(pad.inputs()[1]);
  if (!pads.has_value() || pads->size() != 8 || (*pads)[0] != 0 ||
      (*pads)[1] != 0 || (*pads)[6] != 0 || (*pads)[7] != 0) {
    return;
  }
  Window padded = *window;
  padded.before = {(*pads)[2], (*pads)[4]};
  padded.after = {(*pads)[3], (*pads)[5]};
  padded.PreferSame(view.ShapeOf(pad.inputs()[0]));
  if (!padded.same_padding) return;
  *window = padded;
  *input = view.Source(pad.inputs()[0]);
}

TensorId PadFor(NodeRaiser& node, TensorId input, bool lowest, Window* window) {
  const DraftTensor& tensor = node.draft().tensor(input);
  std::vector<int64_t> dims(tensor.shape.has_rank() ? tensor.shape.rank() : 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t dim = tensor.shape.dim(static_cast<int>(d));
    const bool is_spatial = d == 1 || d == 2;
    dims[d] = dim < 0 || !is_spatial
                  ? dim
                  : dim + window->before[d - 1] + window->after[d - 1];
  }
  const TensorId pads =
      node.Int32s({0, 0, window->before[0], window->after[0], window->before[1],
                   window->after[1], 0, 0});
  node.draft().tensors[pads].shape = graph::PartialShape({4, 2});
  std::vector<TensorId> inputs = {input, pads};
  if (lowest) {
    Constant value = FloatConstant({}, {std::numeric_limits<float>::lowest()});
    const TensorType type = node.draft().tensor(input).type;
    if (type == TensorType::INT8 || type == TensorType::UINT8) {
      value.dtype =
          type == TensorType::INT8 ? tensorflow::DT_INT8 : tensorflow::DT_UINT8;
      value.bytes.assign(1, type == TensorType::INT8 ? '\x80' : '\0');
    }
    inputs.push_back(
        node.draft().AddConstant(node.node().name() + "/lowest", value));
    node.draft().tensors[inputs.back()].quantization =
        node.draft().tensor(input).quantization;
  }
  window->before = window->after = {0, 0};
  return node.EmitBetween(
      lowest ? BuiltinOperator::PADV2 : BuiltinOperator::PAD, std::move(inputs),
      input, graph::PartialShape(dims));
}

}  // namespace optfarm::formats::tflite_raising
