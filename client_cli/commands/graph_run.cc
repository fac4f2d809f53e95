// optctl graph run: feeds .npy files to a graph and writes what it answers.
// Any tensor may be fed or fetched.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/local/laid_out_model.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/session/session.h"

namespace optfarm::client_cli {
namespace {

struct Feed {
  graph::TensorName name;
  runtime::Tensor value;
};

// Names that are longer are cut; file systems take 255 bytes, and a file has
// more of them while it is written. Converters join the names of all layers
// that they fuse.
constexpr size_t kMostInFileName = 200;

// "a/b:0" -> "a__b_0.npy".
std::string OutputFileName(const std::string& name) {
  std::string file =
      absl::StrReplaceAll(name, {{"/", "__"}, {":", "_"}, {";", "_"}});
  if (file.size() > kMostInFileName) {
    const std::string digest = Sha256Hex(name).substr(0, 8);
    file.resize(kMostInFileName - digest.size() - 1);
    absl::StrAppend(&file, "_", digest);
  }
  return absl::StrCat(file, ".npy");
}

// The tensor that the user names, as the model's file spells it or as
// TensorFlow does. "^node" runs an operation, which is no tensor.
absl::StatusOr<graph::TensorName> FindName(const graph::Graph& graph,
                                           const std::string& name) {
  if (!name.empty() && name[0] == '^') return graph::ParseTensorName(name);
  const absl::StatusOr<graph::Endpoint> tensor =
      graph::ResolveTensor(graph, name);
  // The session says more about a name that is not there.
  if (!tensor.ok()) return graph::ParseTensorName(name);
  return graph::TensorName{graph.node(tensor->node).name(), tensor->port};
}

// NumPy has no quantized types: quantized values come as plain integers. The
// dtype is the placeholder's; tensors elsewhere are taken as they are.
runtime::Tensor AsPlaceholderType(const graph::Graph& graph,
                                  const graph::TensorName& name,
                                  runtime::Tensor value) {
  const graph::NodeId id = graph.Find(name.node);
  if (id == graph::kNoNode) return value;
  const auto dtype = graph::GetType(graph.node(id).def(), "dtype");
  if (!dtype.ok() || *dtype == value.dtype()) return value;
  const auto is = [&](tensorflow::DataType quantized,
                      tensorflow::DataType plain) {
    return *dtype == quantized && value.dtype() == plain;
  };
  if (is(tensorflow::DT_QUINT8, tensorflow::DT_UINT8) ||
      is(tensorflow::DT_QINT8, tensorflow::DT_INT8) ||
      is(tensorflow::DT_QUINT16, tensorflow::DT_UINT16) ||
      is(tensorflow::DT_QINT16, tensorflow::DT_INT16) ||
      is(tensorflow::DT_QINT32, tensorflow::DT_INT32)) {
    return value.Reinterpreted(*dtype);
  }
  return value;
}

// "'x', 'y'": what the model has to be fed with.
std::string InputNames(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::NodeId id : graph.Ids()) {
    if (!graph::IsPlaceholder(graph.node(id).op())) continue;
    names.push_back(
        absl::StrCat("'", graph::TensorNameInFile(graph, {id, 0}), "'"));
  }
  return absl::StrJoin(names, ", ");
}

// What of the feeds is not what the model declares; may be why a run failed.
std::string ForeignShapes(const graph::Graph& graph,
                          const std::vector<Feed>& feeds) {
  std::string text;
  for (const Feed& feed : feeds) {
    const graph::NodeId id = graph.Find(feed.name.node);
    const auto* declared =
        id == graph::kNoNode ? nullptr : graph.node(id).FindAttr("shape");
    if (declared == nullptr || !graph::IsPlaceholder(graph.node(id).op())) {
      continue;
    }
    const auto shape = graph::PartialShape::FromProto(declared->shape());
    if (!shape.ok() || !shape->has_rank()) continue;
    bool fits = shape->rank() == feed.value.rank();
    for (int i = 0; fits && i < shape->rank(); ++i) {
      fits = shape->dim(i) < 0 || shape->dim(i) == feed.value.dim(i);
    }
    if (fits) continue;
    absl::StrAppend(&text, "; input '", graph::TensorNameInFile(graph, {id, 0}),
                    "' is ", feed.value.shape().ToString(),
                    ", and the model declares ", shape->ToString());
  }
  return text;
}

class GraphRun final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE",
                "The model: a graph, binary or text, or an ONNX file.",
                &in_graph_);
    flags->Reads();
    flags->Required();
    flags->Texts("input", "NAME=FILE.npy", "Feed this file to this tensor.",
                 &inputs_);
    flags->Texts("output", "NAME",
                 "Fetch this tensor: a node's name, name:port, or its name in "
                 "the model's file.",
                 &outputs_);
    flags->Required();
    flags->Path("out_dir", "DIR",
                "Folder for the outputs, created if missing: NAME.npy with "
                "'/' as '__', ':' and ';' as '_'; long names are cut.",
                &out_dir_);
    flags->Required();
    flags->Integer("threads", "Number of threads. Default: 1.", &threads_, 1,
                   1024);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file,
                             LoadLaidOut(in_graph_, NamedTensors()));
    absl::StatusOr<graph::Graph> graph =
        graph::Graph::FromDef(std::move(file.def));
    if (!graph.ok()) {
      return Annotate(graph.status(), absl::StrCat("'", in_graph_, "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Feed> feeds, LoadFeeds(*graph));
    std::vector<graph::TensorName> fetched;
    for (const std::string& output : outputs_) {
      OPTFARM_ASSIGN_OR_RETURN(fetched.emplace_back(),
                               FindName(*graph, output));
    }
    const std::string foreign = ForeignShapes(*graph, feeds);
    absl::StatusOr<std::vector<runtime::Tensor>> run =
        Execute(runtime::LoadedModel::Create(*std::move(graph)), feeds, fetched,
                std::move(file.package));
    if (!run.ok()) {
      return absl::Status(run.status().code(),
                          absl::StrCat(run.status().message(), foreign));
    }
    const std::vector<runtime::Tensor> answers = *std::move(run);
    OPTFARM_RETURN_IF_ERROR(MakeFolders(out_dir_));
    Table table({{"tensor", "TENSOR"},
                 {"dtype", "TYPE"},
                 {"shape", "SHAPE"},
                 {"file", "FILE"}});
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::string path = JoinPath(out_dir_, OutputFileName(outputs_[i]));
      OPTFARM_RETURN_IF_ERROR(
          Annotate(formats::SaveNpy(answers[i].ToProto(), path),
                   absl::StrCat("while writing ", outputs_[i])));
      table.AddRow({Cell::Text(outputs_[i]),
                    Cell::Text(graph::DataTypeName(answers[i].dtype())),
                    Cell::Text(answers[i].shape().ToString()),
                    Cell::Text(path)});
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  // What the user gives and asks for. "^node" runs an operation.
  std::vector<std::string> NamedTensors() const {
    std::vector<std::string> names;
    for (const std::string& input : inputs_) {
      names.push_back(input.substr(0, input.find('=')));
    }
    for (const std::string& output : outputs_) {
      const bool is_operation = !output.empty() && output[0] == '^';
      names.push_back(is_operation ? output.substr(1) : output);
    }
    return names;
  }

  absl::StatusOr<std::vector<Feed>> LoadFeeds(const graph::Graph& graph) const {
    std::vector<Feed> feeds;
    for (const std::string& input : inputs_) {
      const size_t equals = input.find('=');
      if (equals == std::string::npos || equals == 0) {
        return UsageError(absl::StrCat("--input: '", input,
                                       "' is not of the form NAME=FILE.npy"));
      }
      Feed feed;
      OPTFARM_ASSIGN_OR_RETURN(feed.name,
                               FindName(graph, input.substr(0, equals)));
      if (graph.Find(feed.name.node) == graph::kNoNode) {
        return absl::NotFoundError(absl::StrCat(
            "--input: the model has no tensor '", input.substr(0, equals),
            "'; its inputs are ", InputNames(graph)));
      }
      OPTFARM_ASSIGN_OR_RETURN(
          const tensorflow::TensorProto proto,
          formats::LoadNpy(ExpandHome(input.substr(equals + 1))));
      OPTFARM_ASSIGN_OR_RETURN(runtime::Tensor value,
                               runtime::Tensor::FromProto(proto));
      feed.value = AsPlaceholderType(graph, feed.name, std::move(value));
      feeds.push_back(std::move(feed));
    }
    return feeds;
  }

  absl::StatusOr<std::vector<runtime::Tensor>> Execute(
      const std::shared_ptr<const runtime::LoadedModel>& model,
      const std::vector<Feed>& feeds,
      const std::vector<graph::TensorName>& fetched,
      std::shared_ptr<const formats::MemmappedPackage> package) const {
    std::vector<graph::TensorName> fed;
    std::vector<runtime::Tensor> values;
    for (const Feed& feed : feeds) {
      fed.push_back(feed.name);
      values.push_back(feed.value);
    }
    runtime::SessionOptions options;
    options.threads = static_cast<int>(threads_);
    options.find_region = formats::RegionsOf(std::move(package));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::unique_ptr<runtime::Session> session,
        runtime::Session::Create(model, fed, fetched, options));
    return session->Run(values);
  }

  std::string in_graph_, out_dir_;
  std::vector<std::string> inputs_, outputs_;
  int64_t threads_ = 1;
};

}  // namespace

CommandInfo GraphRunCommand() {
  return {
      "graph run", "Run a graph once on .npy files.",
      "Any tensor may be fed or fetched, by name or name:port, or by its name\n"
      "in the model's file.\n"
      "  optctl graph run --in_graph=m.pb --input=image=x.npy \\\n"
      "      --output=softmax --out_dir=answers",
      [] { return std::unique_ptr<Command>(new GraphRun); }};
}

}  // namespace optfarm::client_cli
