// Subgraphs of If, Loop and Scan as functions of the graph's library.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_SUBGRAPH_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_SUBGRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/onnx/graph_builder.h"
#include "engine/formats/onnx/graph_reader.h"
#include "engine/formats/onnx/lowering.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {

// What is known of a subgraph's input.
struct SubgraphArgument {
  DataType dtype = tensorflow::DT_INVALID;
  PartialShape shape;
};

// A subgraph, lowered into a graph of its own.
struct OnnxSubgraph {
  std::unique_ptr<GraphBuilder> builder;
  std::unique_ptr<OnnxGraphReader> reader;
  // Placeholders in the builder.
  std::vector<Endpoint> arguments;
  std::vector<Endpoint> results;

  const std::vector<OnnxGraphReader::Capture>& captures() const {
    return reader->captures();
  }
};

// Reads a subgraph of the node; it sees the names around it.
// ERRORS: InvalidArgument for another number of arguments, or when a result
// cannot be made (the model's reasons say why).
absl::StatusOr<OnnxSubgraph> ReadSubgraph(
    NodeLowering& n, const onnx::GraphProto& graph,
    const std::vector<SubgraphArgument>& arguments);

// Adds a function to the library: its arguments are the placeholders `inputs`
// of the builder (nothing: one that the body does not read), of these types.
// Returns the attribute that names it.
// ERRORS: InvalidArgument for a graph that is no function's body.
absl::StatusOr<tensorflow::AttrValue> AddFunction(
    OnnxModelContext* model, absl::string_view prefix,
    const GraphBuilder& builder, const std::vector<Endpoint>& inputs,
    const std::vector<DataType>& input_types,
    const std::vector<Endpoint>& results);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_SUBGRAPH_H_
