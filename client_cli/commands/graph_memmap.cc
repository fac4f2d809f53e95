// optctl graph memmap: makes a memory-mapped package of a graph, as
// TensorFlow's convert_graphdef_memmapped_format does.

#include <utility>

#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/memmapped_package.h"

namespace optfarm::client_cli {
namespace {

class GraphMemmap final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE", "The graph to read, binary or text.",
                &in_graph_);
    flags->Required();
    flags->Path("out_graph", "FILE", "The package to write.", &out_graph_);
    flags->Required();
    flags->Integer("min_conversion_tensor_size",
                   "Constants with at least this many bytes are mapped. "
                   "Default: 10000.",
                   &min_bytes_, 1);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef graph,
                             formats::LoadModelDef(in_graph_));
    OPTFARM_ASSIGN_OR_RETURN(
        const int converted,
        formats::SaveMemmapped(std::move(graph), min_bytes_, out_graph_));
    *context.err << "Converted " << converted << " nodes\n";
    if (context.format != OutputFormat::kTable) {
      OPTFARM_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(out_graph_));
      Table table({{"nodes", "NODES"}, {"bytes", "BYTES"}, {"file", "FILE"}});
      table.AddRow({Cell::Integer(converted),
                    Cell::Integer(static_cast<int64_t>(bytes)),
                    Cell::Text(out_graph_)});
      *context.out << table.ToFormat(context.format);
    }
    return ExitCode::kOk;
  }

 private:
  std::string in_graph_, out_graph_;
  int64_t min_bytes_ = 10000;
};

}  // namespace

OriginalTool ConvertGraphdefMemmappedFormatTool() {
  return {.name = "convert_graphdef_memmapped_format",
          .command = "graph memmap",
          .create = GraphMemmapCommand().create};
}

CommandInfo GraphMemmapCommand() {
  return {"graph memmap", "Convert a graph to a memory-mapped package.",
          "Large constants are aligned in the file and used in place, without "
          "a copy: loading is cheap, and memory is shared. All commands that "
          "take a graph accept packages.\n"
          "  optctl graph memmap --in_graph=m.pb --out_graph=m.mmpb",
          [] { return std::unique_ptr<Command>(new GraphMemmap); }};
}

}  // namespace optfarm::client_cli
