// What the opaque types of c_api.h hold.

#ifndef OPTFARM_ENGINE_API_HANDLES_H_
#define OPTFARM_ENGINE_API_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "engine/api/c_api.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

namespace optfarm::api {

struct TensorDescription {
  std::string name;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool has_rank = false;
  std::vector<int64_t> dims;
};

struct Signature {
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
};

// The placeholders that the graph's ends need, and the ends.
absl::StatusOr<Signature> FindSignature(const graph::Graph& graph);

// The run as JSON; c_api.h has its form.
std::string TraceJson(const runtime::RunTrace& trace);

}  // namespace optfarm::api

struct optfarm_tensor {
  optfarm::runtime::Tensor value;
};

struct optfarm_model {
  optfarm_model(std::shared_ptr<const optfarm::runtime::LoadedModel> loaded,
                optfarm::runtime::RegionFinder regions)
      : model(std::move(loaded)), find_region(std::move(regions)) {}

  // Found when first asked for: an app that knows its model does not pay.
  const absl::StatusOr<optfarm::api::Signature>& signature() const {
    absl::call_once(once_, [this] {
      signature_ = optfarm::api::FindSignature(model->graph());
    });
    return signature_;
  }

  const std::shared_ptr<const optfarm::runtime::LoadedModel> model;
  // Where constants lie that a memory-mapped package holds; else empty.
  const optfarm::runtime::RegionFinder find_region;

 private:
  mutable absl::once_flag once_;
  mutable absl::StatusOr<optfarm::api::Signature> signature_;
};

struct optfarm_cancel {
  std::atomic<bool> is_set{false};
};

struct optfarm_thread_pool {
  std::shared_ptr<optfarm::runtime::ThreadPool> pool;
};

struct optfarm_session {
  // Before the session, which uses it to the end.
  std::shared_ptr<optfarm::runtime::ThreadPool> pool;
  std::unique_ptr<optfarm::runtime::Session> session;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

#endif  // OPTFARM_ENGINE_API_HANDLES_H_
