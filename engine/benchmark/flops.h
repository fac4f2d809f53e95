// How many floating-point operations the heavy ops of a graph do, as
// TensorFlow's benchmark_model counts: two for each multiply-add of the ops
// whose row counts them (Conv2D, MatMul, DepthwiseConv2dNative and their
// quantized forms). Needs shapes alone: nothing is run.

#ifndef OPTFARM_ENGINE_BENCHMARK_FLOPS_H_
#define OPTFARM_ENGINE_BENCHMARK_FLOPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"

namespace optfarm::benchmark {

struct NodeFlops {
  std::string name;
  std::string op;
  // UNITS: operations in one run.
  double flops = 0;
};

struct OpFlops {
  std::string op;
  // UNITS: nodes; operations in one run.
  int64_t nodes = 0;
  double flops = 0;
};

struct FlopCount {
  // UNITS: operations in one run.
  double flops = 0;
  // Heavy nodes whose shapes could not be found out; they count none.
  int unknown_nodes = 0;
  // The counted nodes in the graph's order.
  std::vector<NodeFlops> nodes;
  // Largest first.
  std::vector<OpFlops> ops;
};

// Counts the nodes that the outputs need when the inputs have these shapes.
// ERRORS: InvalidArgument for a cycle.
absl::StatusOr<FlopCount> CountFlops(const graph::Graph& graph,
                                     const graph::GraphIo& io);

// The least time that one run can take on a device that does `gflops` billion
// operations a second: arithmetic at full speed and nothing else. Real runs
// take longer. REQUIRES: gflops > 0.
absl::Duration LeastRunTime(const FlopCount& count, double gflops);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_FLOPS_H_
