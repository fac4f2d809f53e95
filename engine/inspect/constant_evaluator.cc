#include "engine/inspect/constant_evaluator.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/session/session.h"

namespace optfarm::inspect {

absl::StatusOr<tensorflow::TensorProto> EvaluateConstant(
    tensorflow::GraphDef def, const std::string& tensor) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph,
                           graph::Graph::FromDef(std::move(def)));
  OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName name,
                           graph::ParseTensorName(tensor));
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Session> session,
                           runtime::Session::Create(graph, {}, {name}));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<runtime::Tensor> values,
                           session->Run({}));
  return values[0].ToProto();
}

}  // namespace optfarm::inspect
