// State that lasts from one run of a model to the next: resource variables
// (VAR_HANDLE, ...) and tensors that an operator updates (is_variable).
//
// Within a run, a variable is a value: a read gives what was assigned last, or
// what the variable held when the run began. What is assigned last is stored
// once, when the run ends, and every output waits for that.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_VARIABLES_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_VARIABLES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/node_maker.h"

namespace optfarm::tflite {

// A variable of the model: state that lasts from one run to the next.
struct Variable {
  // Its handle, and the value that it has when nothing was assigned yet.
  Value handle, initial;
  // Its value at this point of the run; empty where it was not read yet.
  Value current;
  // The read at the start of the run; empty where it is only written.
  Value read;
  bool is_assigned = false;
};

// The value of a resource variable at this point of the run.
// ERRORS: InvalidArgument when nothing ever assigns it.
absl::StatusOr<Value> ReadVariable(const std::string& key, NodeMaker* maker,
                                   std::map<std::string, Variable>* variables);

// Adds the nodes that store what was assigned, and returns them.
std::vector<Value> StoreVariables(NodeMaker* maker,
                                  std::map<std::string, Variable>* variables);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_VARIABLES_H_
