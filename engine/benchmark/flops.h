// How many floating-point operations the heavy ops of a graph do, as
// TensorFlow's benchmark_model counts: two for each multiply-add of Conv2D,
// MatMul, DepthwiseConv2dNative and their quantized kin; other ops count none.

#ifndef OPTFARM_CLIENT_CLI_FLOPS_H_
#define OPTFARM_CLIENT_CLI_FLOPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"

namespace optfarm::client_cli {

struct FlopCount {
  // UNITS: operations in one run.
  double flops = 0;
  // Heavy nodes whose shapes could not be found out; they count none.
  int unknown_nodes = 0;
};

// Counts the nodes that the outputs need when the inputs have these shapes.
// ERRORS: InvalidArgument for a cycle.
absl::StatusOr<FlopCount> CountFlops(const graph::Graph& graph,
                                     const graph::GraphIo& io);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLOPS_H_
