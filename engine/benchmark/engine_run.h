// One variant in a runtime that the user ships: what Optfarm's is fed, put in
// the order of the engine's inputs, and its answers in the order of ours.

#ifndef OPTFARM_ENGINE_BENCHMARK_ENGINE_RUN_H_
#define OPTFARM_ENGINE_BENCHMARK_ENGINE_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/benchmark/engine_process.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// What Optfarm's runtime was fed and answered the first time.
struct ReferenceRun {
  std::vector<std::string> input_names, output_names;
  std::vector<runtime::Tensor> inputs, outputs;
  bool is_quantized = false;
};

struct EngineLoad {
  std::string version;
  absl::Duration load_time;
  std::vector<engine_host::TensorInfo> outputs;
};

// Loads the model and feeds it. Inputs are matched by name, or else by their
// order.
// ERRORS: FailedPrecondition when it takes other inputs than Optfarm's runtime;
// those of the engine.
absl::StatusOr<EngineLoad> LoadInEngine(const std::string& model_path,
                                        const ReferenceRun& reference,
                                        int threads, EngineProcess* engine);

// Its answers, after one run, against the reference's.
// ERRORS: FailedPrecondition when it has other outputs; those of the engine.
absl::StatusOr<v1::NumericCheck> CompareAnswers(const ReferenceRun& reference,
                                                const EngineLoad& load,
                                                EngineProcess* engine);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_ENGINE_RUN_H_
