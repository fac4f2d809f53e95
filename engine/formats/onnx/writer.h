// Writes a graph as an ONNX model.
//
// Graphs of any origin are written: TensorFlow's, in NHWC, and those that our
// readers make of ONNX and TensorFlow Lite files. Convolution trunks become
// NCHW as a whole (raising/graph_raiser.h); inputs and outputs keep the graph's
// layout and names. Quantized models are written as QuantizeLinear and
// DequantizeLinear pairs, with scales and zero points as they are in the graph;
// ops on min/max ranges have to become those first
// (make_quantization_explicit).

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_WRITER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_WRITER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::formats {

inline constexpr int kOldestWrittenOpset = 13;
inline constexpr int kNewestWrittenOpset = 21;
inline constexpr int kDefaultWrittenOpset = 17;

struct OnnxWriteOptions {
  // kOldestWrittenOpset to kNewestWrittenOpset.
  int opset = kDefaultWrittenOpset;
  struct Input {
    graph::TensorName name;
    // In place of the shape that the graph gives; -1 stays open.
    std::optional<graph::PartialShape> shape;
  };
  // Empty: the inputs that the graph declares, else the placeholders that the
  // outputs need, in the order of the graph.
  std::vector<Input> inputs = {};
  // Empty: the outputs that the graph declares, else its ends.
  std::vector<graph::TensorName> outputs = {};
  // Keys and values that the file says of itself (metadata_props).
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// The model's bytes, the same for the same graph.
// ERRORS: FailedPrecondition with every node that ONNX cannot hold, one on a
// line with its op and the reason, and when nothing looks like an output;
// InvalidArgument for an opset that is not written or a cyclic graph; NotFound
// for a name.
absl::StatusOr<std::string> WriteOnnx(const graph::Graph& graph,
                                      const OnnxWriteOptions& options = {});

// Whether an op has a raising. It may still be refused for its attributes.
bool CanWriteAsOnnx(absl::string_view op);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_WRITER_H_
