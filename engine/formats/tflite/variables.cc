#include "engine/formats/tflite/variables.h"

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"

namespace optfarm::tflite {
namespace {

// Makes the handle once the type of the values is known.
const Value& HandleOf(const std::string& key, tensorflow::DataType type,
                      NodeMaker* maker, Variable* variable) {
  if (variable->handle.empty()) {
    variable->handle = maker->Add(
        "VarHandleOp", graph::NodeNameOf(absl::StrCat("variable/", key)), {},
        [&](tensorflow::NodeDef* node) {
          graph::SetString(node, "shared_name", key);
          graph::SetType(node, "dtype", type);
          (*node->mutable_attr())["shape"].mutable_shape()->set_unknown_rank(
              true);
        });
  }
  return variable->handle;
}

}  // namespace

absl::StatusOr<Value> ReadVariable(const std::string& key, NodeMaker* maker,
                                   std::map<std::string, Variable>* variables) {
  Variable& variable = (*variables)[key];
  if (!variable.current.empty()) return variable.current;
  if (variable.initial.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", key, "' is read, but nothing gives it a first value"));
  }
  const Value handle = HandleOf(key, variable.initial.type, maker, &variable);
  variable.read =
      maker->Add("ReadVariableOrInitial", absl::StrCat(handle.node, "/read"),
                 {handle, variable.initial});
  variable.current = variable.read;
  return variable.current;
}

std::vector<Value> StoreVariables(NodeMaker* maker,
                                  std::map<std::string, Variable>* variables) {
  std::vector<Value> stores;
  for (auto& [key, variable] : *variables) {
    if (!variable.is_assigned || !maker->status().ok()) continue;
    const Value handle = HandleOf(key, variable.current.type, maker, &variable);
    const Value store =
        maker->Add("AssignVariableOp", absl::StrCat(handle.node, "/assign"),
                   {handle, variable.current});
    if (!variable.read.empty()) maker->AddControl(store, variable.read);
    stores.push_back(store);
  }
  return stores;
}

}  // namespace optfarm::tflite
