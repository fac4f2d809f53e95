// Freezing: a graph's variables become constants with the values that a
// checkpoint has, and what the outputs do not need is left out.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_FREEZE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_FREEZE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tensorflow/checkpoint.h"
#include "engine/formats/tensorflow/evaluator.h"
#include "engine/formats/tensorflow/saved_model.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// What there is to freeze.
struct FreezeSource {
  tensorflow::GraphDef graph;
  // nullptr when there is none (a SavedModel without variables).
  std::unique_ptr<Checkpoint> checkpoint;
  // The node that restores the variables; it tells which tensor of the
  // checkpoint belongs to which variable. "": names tell.
  std::string restore_op;
  // The node that a loader runs after restoring; "" for none.
  std::string init_op;
  // Files that the graph reads, such as vocabularies.
  std::vector<std::string> assets;
  // Where inputs and outputs may be described; empty for a bare graph.
  tensorflow::MetaGraphDef meta;
};

// A graph file, with a SaverDef's file where `saver_path` is not empty.
// ERRORS: those of the files.
absl::StatusOr<FreezeSource> OpenGraphToFreeze(
    const std::string& graph_path, const std::string& checkpoint_path,
    const std::string& saver_path = "");
// A checkpoint's .meta file.
absl::StatusOr<FreezeSource> OpenMetaGraphToFreeze(
    const std::string& meta_path, const std::string& checkpoint_path);
// ERRORS: those of the files; NotFound for tags that it does not have.
absl::StatusOr<FreezeSource> OpenSavedModelToFreeze(
    const std::string& folder, const std::vector<std::string>& tags);

struct FreezeOptions {
  // Nodes to keep, with all they need; ports are left out of account.
  std::vector<std::string> outputs;
  // Nodes that are run after restoring: the Assign nodes that they reach give
  // variables a value. Needs `evaluate`.
  std::vector<std::string> initializers;
  // Variables whose value has another name in the checkpoint than saver or
  // variable say, as an average of it: {"w", "w/ExponentialMovingAverage"}.
  std::vector<std::pair<std::string, std::string>> stored_names;
  // Names of variables: only these become constants, or all but those. Empty:
  // no limit.
  std::vector<std::string> only_variables;
  std::vector<std::string> not_variables;
  bool clear_devices = true;
  // What reads the result of an update (Assign, AssignAdd, ...) reads the
  // stored value instead, and what waits for one does not: a training graph
  // then freezes to what it computes without training. Otherwise an output that
  // needs an update is an error.
  bool drop_updates = false;
  Evaluator evaluate;
};

struct FrozenGraph {
  tensorflow::GraphDef graph;
  int converted_variables = 0;
  // What the user should know, one sentence each.
  std::vector<std::string> remarks;
};

// Takes the graph of `source`. Versions and function library are kept.
// ERRORS: InvalidArgument for a graph that is none, an output that it does not
// have, a graph without variables although there is a checkpoint ("is it
// frozen already?"), a variable whose stored value has another type or shape,
// an output that needs a node which writes to a variable; NotFound listing
// variables without a value; Unimplemented for a use of a variable that no
// constant can have, naming the node, or an initializer that cannot be
// evaluated; the checkpoint's.
absl::StatusOr<FrozenGraph> Freeze(FreezeSource source,
                                   const FreezeOptions& options);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_FREEZE_H_
