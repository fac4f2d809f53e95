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
#include "engine/runtime/session.h"
#include "engine/runtime/tensor.h"

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
  optfarm_model(optfarm::graph::Graph loaded,
                optfarm::runtime::RegionFinder regions)
      : graph(std::move(loaded)), find_region(std::move(regions)) {}

  // Found when first asked for: an app that knows its model does not pay.
  const absl::StatusOr<optfarm::api::Signature>& signature() const {
    absl::call_once(
        once_, [this] { signature_ = optfarm::api::FindSignature(graph); });
    return signature_;
  }

  const optfarm::graph::Graph graph;
  // Where constants lie that a memory-mapped package holds; else empty.
  const optfarm::runtime::RegionFinder find_region;

 private:
  mutable absl::once_flag once_;
  mutable absl::StatusOr<optfarm::api::Signature> signature_;
};

struct optfarm_cancel {
  std::atomic<bool> is_set{false};
};

struct optfarm_session {
  std::unique_ptr<optfarm::runtime::Session> session;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

#endif  // OPTFARM_ENGINE_API_HANDLES_H_
