#include "engine/optimize/check_sample.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/runtime/session/session.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

constexpr size_t kMaxBytes = size_t{64} << 20;

void Add(const graph::TensorName& name, const Tensor& value,
         v1::CheckSample::NamedTensor* named) {
  named->set_name(graph::ToString(name));
  named->set_tensor(value.ToProto().SerializeAsString());
}

absl::Status Write(const OptimizerInput& job, const graph::Graph& graph,
                   const std::vector<Tensor>& inputs,
                   const std::string& description, const char* file) {
  runtime::SessionOptions options;
  options.threads = job.threads;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(graph, job.inputs, job.outputs, options));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           session->Run(inputs));
  v1::CheckSample sample;
  sample.set_description(description);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Add(job.inputs[i], inputs[i], sample.add_inputs());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Add(job.outputs[i], outputs[i], sample.add_outputs());
  }
  if (sample.ByteSizeLong() > kMaxBytes) return absl::OkStatus();
  return WriteFileAtomically(JoinPath(job.out_folder, file),
                             sample.SerializeAsString());
}

}  // namespace

absl::Status WriteCheckSamples(const OptimizerInput& job,
                               const graph::Graph& optimized) {
  for (int64_t i = 0; i < job.dataset->size(); ++i) {
    const std::optional<std::vector<Tensor>> inputs = job.reader->Read(i);
    if (!inputs.has_value()) continue;
    const std::string description =
        job.dataset->is_random()
            ? "seeded random values"
            : absl::StrCat("sample ", job.dataset->SampleName(i));
    OPTFARM_RETURN_IF_ERROR(
        Write(job, *job.original, *inputs, description, kFloatCheckFile));
    return Write(job, optimized, *inputs, description, kOptimizedCheckFile);
  }
  return absl::OkStatus();
}

}  // namespace optfarm::optimize
