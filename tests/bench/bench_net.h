// Nets to measure: full-size models with random weights, or frozen graphs.

#ifndef OPTFARM_TESTS_BENCH_BENCH_NET_H_
#define OPTFARM_TESTS_BENCH_BENCH_NET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

namespace optfarm::bench {

// fp32          constants and batch norms are folded
// int8          TensorFlow 1.4's 8-bit chain; ranges are found in every run
// int8-frozen   the same with frozen ranges
// layers        whole layers in one op, signed weights with a range for each
//               channel, frozen ranges: what the recipe int8 makes
// layers-uint8  the same with unsigned weights and one range for all channels
// none          the graph as it is
std::vector<std::string> ChainNames();

struct NetOptions {
  // What is done to the graph first, one of ChainNames().
  std::string chain = "fp32";
  // Of a file, NAME=SHAPE or NAME=SHAPE=VALUE; empty: found in the graph.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct Net {
  graph::Graph graph;
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  std::vector<runtime::Tensor> feeds;
  // By feed: whether the command line said its value.
  std::vector<bool> is_given;
};

// `name`: a full-size model's (full_size_models.h) or a file's. Feeds are the
// same in every run.
// ERRORS: InvalidArgument for what the net does not have; those of reading and
// transforming it.
absl::StatusOr<Net> LoadNet(const std::string& name, const NetOptions& options);

// OWNERSHIP: `pool` is the caller's and outlives the session.
absl::StatusOr<std::unique_ptr<runtime::Session>> MakeSession(
    const Net& net, runtime::ThreadPool* pool, bool fast_kernels);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_BENCH_NET_H_
