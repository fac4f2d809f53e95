#include "client_cli/local/laid_out_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/transforms/layout/lay_out_model.h"

namespace optfarm::client_cli {

absl::StatusOr<formats::LoadedGraph> LoadLaidOut(
    const std::string& path, const std::vector<std::string>& kept) {
  OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file, formats::LoadModel(path));
  const bool is_declared = std::any_of(
      file.def.node().begin(), file.def.node().end(),
      [](const tensorflow::NodeDef& node) {
        return graph::FindAttr(node, graph::kModelFormatAttr) != nullptr;
      });
  // TensorFlow's graphs run as they are.
  if (!is_declared) return file;
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph,
                           graph::Graph::FromDef(std::move(file.def)));
  OPTFARM_RETURN_IF_ERROR(Annotate(transforms::LayOutModel(kept, &graph),
                                   absl::StrCat("'", path, "'")));
  file.def = std::move(graph).TakeDef();
  return file;
}

}  // namespace optfarm::client_cli
