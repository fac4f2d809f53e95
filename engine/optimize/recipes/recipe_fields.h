// Moves the plain fields of a recipe between YAML and the message, by the
// message's own description: a field added to recipes.proto needs no line here.
// Only recipes.cc includes this file.

#ifndef OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_FIELDS_H_
#define OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_FIELDS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace YAML {
class Emitter;
class Node;
}  // namespace YAML

namespace optfarm::optimize {

// Line of each field that was read, by its path ("bounds.min_snr_db").
using FieldLines = std::map<std::string, int>;

// A YAML place as "line 3: ", counted from 1.
std::string AtLine(const YAML::Node& node);

// Fills `message` from the keys of a YAML map; enum values are written in lower
// case. `path` is the message's own, with a dot at its end, or "". Keys named
// in `elsewhere` are left to the caller.
// ERRORS: InvalidArgument with the line for a key that is no field (with the
// nearest names), a key that comes twice, or a value that is not of the type.
absl::Status ReadFields(const YAML::Node& map, const std::string& path,
                        absl::string_view elsewhere,
                        google::protobuf::Message* message, FieldLines* lines);

// Writes the fields that are set as entries of the emitter's open map.
void WriteFields(const google::protobuf::Message& message,
                 absl::string_view elsewhere, YAML::Emitter* out);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_RECIPES_RECIPE_FIELDS_H_
