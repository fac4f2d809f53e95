// One variant ready to be run: its session and the values it is fed.

#ifndef OPTFARM_ENGINE_BENCHMARK_LOADED_VARIANT_H_
#define OPTFARM_ENGINE_BENCHMARK_LOADED_VARIANT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/benchmark/benchmark_request.h"
#include "engine/benchmark/flops.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/plan/fused_nodes.h"
#include "engine/runtime/session/session.h"
#include "engine/runtime/session/step_work.h"

namespace optfarm::benchmark {

struct LoadedVariant {
  // The session's threads when they are bound to processors.
  std::unique_ptr<runtime::ThreadPool> pool;
  std::unique_ptr<runtime::Session> session;
  std::vector<runtime::Tensor> inputs;
  // As the model's file names them.
  std::vector<std::string> input_names, output_names;
  // "seeded random values", "values from x.npy".
  std::string inputs_fed;
  // To read, check, plan and prepare the graph.
  absl::Duration load_time;
  // The graph has ops that quantize.
  bool is_quantized = false;
  // Empty unless the request asks for them.
  FlopCount flops;
  std::vector<runtime::FusedNodes> fused_nodes;
  std::optional<runtime::StepWorks> step_works;
};

// ERRORS: those of loading the graph, of inferring its inputs and outputs, of
// making the session, and of reading input files, with the variant's name.
absl::StatusOr<LoadedVariant> LoadVariant(const BenchmarkVariant& variant,
                                          const BenchmarkRequest& request,
                                          int threads);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_LOADED_VARIANT_H_
