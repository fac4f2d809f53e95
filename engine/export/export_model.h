// A graph as a model file of any format that we write, prepared for it, and
// checked by reading it back. Start here to understand the room.

#ifndef OPTFARM_ENGINE_EXPORT_EXPORT_MODEL_H_
#define OPTFARM_ENGINE_EXPORT_EXPORT_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/export/expose_state.h"
#include "engine/formats/onnx/writer.h"
#include "engine/formats/tflite/metadata.h"
#include "engine/formats/tflite/write_options.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"

namespace optfarm::exporting {

enum class ModelFormat : uint8_t { kGraph, kGraphText, kOnnx, kTflite };

// "pb", "pbtxt", "onnx", "tflite".
absl::string_view FormatName(ModelFormat format);

// The format of a file to write, by the end of its name.
// ERRORS: InvalidArgument with the ends that are known.
absl::StatusOr<ModelFormat> FormatOfPath(absl::string_view path);

struct ExportOptions {
  ModelFormat format = ModelFormat::kGraph;
  // Of ONNX.
  int opset = formats::kDefaultWrittenOpset;
  // Of ONNX: int8 values and weights become uint8, with zero points 128 higher
  // (MakeValuesUnsigned).
  bool unsigned_values = false;
  // Large float constants are stored in 16 bits.
  bool half_weights = false;
  // Of TensorFlow Lite: weights of float layers as int8, the type of quantized
  // inputs and outputs, and whether an open batch stays open.
  bool int8_weights = false;
  formats::TfliteEnds ends = formats::TfliteEnds::kAsTheyAre;
  bool dynamic_batch = false;
  // Dimensions that the graph leaves open have the sizes of `io`, instead of
  // staying open.
  bool fixes_sizes = false;
  // What ranges of activations become: int8, uint8, symmetric or int16 (type of
  // make_quantization_explicit).
  std::string activations = "int8";
  // Names of classes and the scale of pictures, for files of TensorFlow Lite
  // and ONNX, in place of what the model's own file says of them.
  formats::TfliteMetadata metadata = {};
  // What became of the model's state; "" for a model that has none. Formats
  // other than the graph's own keep it with the model.
  std::string state = {};
};

// The bytes of a file of the format. For formats other than the graph's own,
// what they have no place for is taken out first: training nodes, arithmetic on
// constants, ranges of quantized values (make_quantization_explicit). `io` says
// what the model's inputs and outputs are; dimensions that the graph leaves
// open stay open.
// ERRORS: those of the writers, with all reasons; ResourceExhausted for files
// that are too large.
absl::StatusOr<std::string> ExportModel(const graph::Graph& graph,
                                        const graph::GraphIo& io,
                                        const ExportOptions& options);

// Whether 8-bit layers find their ranges in each run, because they were not
// calibrated. Other formats have no ops for that.
bool FindsRangesInRuns(const graph::Graph& graph);

// How far the answers of a written model are from the graph's.
struct ExportDifference {
  // Of the output that is farthest off for its size, where outputs that are off
  // by more than one step come first.
  double largest = 0;
  std::string output;
  // The largest magnitude of that output's elements in the graph.
  double magnitude = 0;
  // Between neighbouring values of that output, where QuantizeLinear or
  // DequantizeLinear with one scale makes it; else 0.
  double step = 0;
  // Elements that differ, of all outputs.
  int64_t unequal = 0, elements = 0;

  // Scales are floats.
  bool IsOneStep() const { return largest > 0 && largest <= 1.001 * step; }
  // Whether it is more than a share of the magnitude and than one step.
  bool IsLarge(double share) const {
    return largest > share * magnitude && !IsOneStep();
  }
};

// A model whose state became inputs and outputs.
struct StatefulModel {
  // As it was. OWNERSHIP: outlives the comparison.
  const graph::Graph* original = nullptr;
  std::vector<ExposedState> states;
};

// Reads the bytes back and runs both models on the same random inputs; several
// times, each run on the state that the one before left, where there is state.
// ERRORS: those of reading and running; FailedPrecondition where an output is
// missing or has another type or shape.
absl::StatusOr<ExportDifference> CompareExported(
    const graph::Graph& graph, const graph::GraphIo& io,
    absl::string_view bytes, const StatefulModel& stateful = {});

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_EXPORT_MODEL_H_
