#include "client_cli/jobs/model_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/files/archive.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/freeze.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/saved_model.h"
#include "engine/graph/attr.h"
#include "engine/inspect/constant_evaluator.h"

namespace optfarm::client_cli {
namespace {

using formats::FileKind;

// How deep in an archive a SavedModel may be: "export/1/saved_model.pb".
constexpr int kMostFoldersDown = 4;

FileKind KindOf(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file.ok() ? formats::IdentifyBytes((*file)->bytes())
                   : FileKind::kUnknown;
}

// SavedModels in `folder` and below.
void FindSavedModels(const std::string& folder, int depth,
                     std::vector<std::string>* found) {
  if (formats::IsSavedModelFolder(folder)) found->push_back(folder);
  if (depth == kMostFoldersDown) return;
  const auto names = ListFolder(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(folder, name);
    if (IsFolder(path)) FindSavedModels(path, depth + 1, found);
  }
}

// "dir/export/" -> "export".
std::string NameOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(BaseName(path));
}

// "dir/model.tar.gz" -> "model".
std::string StemOf(absl::string_view path) {
  const std::string name = NameOf(path);
  return name.substr(0, name.find('.', 1));
}

class Preparer {
 public:
  explicit Preparer(const ModelSource& source) : source_(source) {}

  absl::StatusOr<PreparedModel> Run();

 private:
  absl::Status Unpack();
  absl::StatusOr<formats::FreezeSource> OpenSavedModel(
      const std::string& folder) const;
  absl::StatusOr<formats::FreezeSource> Open(FileKind kind);
  absl::Status FillFromSignature(const formats::FreezeSource& opened);
  absl::Status FreezeIt(formats::FreezeSource opened);
  void FillOrigin(int variables);
  absl::Status MakeFolder();

  const ModelSource& source_;
  // Where files are made; empty until one is.
  std::string folder_;
  // The SavedModel, where it was unpacked.
  std::string unpacked_;
  std::string what_;
  // Of the SavedModel's graph that was chosen, and the signature that was read.
  std::vector<std::string> tags_;
  std::string signature_;
  PreparedModel prepared_;
};

absl::Status Preparer::MakeFolder() {
  if (!folder_.empty()) return absl::OkStatus();
  if (source_.scratch.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(folder_, MakeTemporaryFolder("optctl_model_"));
    prepared_.folder = std::make_shared<InterruptCleanup>(folder_);
    return absl::OkStatus();
  }
  folder_ = JoinPath(source_.scratch, "model");
  return MakeFolders(folder_);
}

absl::Status Preparer::Unpack() {
  OPTFARM_RETURN_IF_ERROR(MakeFolder());
  const std::string folder = JoinPath(folder_, "archive");
  OPTFARM_RETURN_IF_ERROR(MakeFolders(folder));
  OPTFARM_RETURN_IF_ERROR(formats::UnpackArchive(source_.path, folder));
  std::vector<std::string> found;
  FindSavedModels(folder, 0, &found);
  if (found.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("archive '", source_.path, "' has ", found.size(),
                     " folders with a saved_model.pb, one is expected"));
  }
  unpacked_ = found[0];
  return absl::OkStatus();
}

absl::StatusOr<formats::FreezeSource> Preparer::OpenSavedModel(
    const std::string& folder) const {
  if (!source_.checkpoint.empty()) {
    return absl::InvalidArgumentError(
        "a SavedModel has its own variables; leave --checkpoint out");
  }
  if (!source_.tags.empty()) {
    return formats::OpenSavedModelToFreeze(folder, source_.tags);
  }
  // The usual tag where there are several, else whatever the one graph has.
  auto opened = formats::OpenSavedModelToFreeze(folder, {});
  if (absl::IsNotFound(opened.status())) {
    opened = formats::OpenSavedModelToFreeze(folder, {"serve"});
  }
  return opened;
}

absl::StatusOr<formats::FreezeSource> Preparer::Open(FileKind kind) {
  if (kind == FileKind::kZip || kind == FileKind::kTar ||
      kind == FileKind::kGzip) {
    OPTFARM_RETURN_IF_ERROR(Unpack());
    what_ = absl::StrCat("the SavedModel in '", source_.path, "'");
    return OpenSavedModel(unpacked_);
  }
  if (formats::IsSavedModelFolder(source_.path)) {
    what_ = absl::StrCat("SavedModel '", source_.path, "'");
    return OpenSavedModel(source_.path);
  }
  what_ = absl::StrCat("'", source_.path, "' with checkpoint '",
                       source_.checkpoint, "'");
  if (kind == FileKind::kMetaGraph) {
    return formats::OpenMetaGraphToFreeze(source_.path, source_.checkpoint);
  }
  return formats::OpenGraphToFreeze(source_.path, source_.checkpoint);
}

absl::Status Preparer::FillFromSignature(const formats::FreezeSource& opened) {
  prepared_.inputs = source_.inputs;
  prepared_.outputs = source_.outputs;
  if (!prepared_.outputs.empty() && source_.signature.empty()) {
    return absl::OkStatus();
  }
  absl::StatusOr<formats::Signature> signature =
      formats::FindSignature(opened.meta, source_.signature);
  if (!signature.ok()) {
    return Annotate(
        signature.status(),
        source_.signature.empty()
            ? absl::StrCat(what_, ": --outputs=NAMES is needed to freeze it")
            : absl::StrCat("--signature: ", what_));
  }
  if (prepared_.inputs.empty()) {
    for (const formats::SignatureTensor& input : signature->inputs) {
      v1::TensorSpec& spec = prepared_.inputs.emplace_back();
      spec.set_name(input.tensor);
      if (input.dtype != tensorflow::DT_INVALID) {
        spec.set_dtype(graph::DataTypeName(input.dtype));
      }
      if (!input.shape) continue;
      spec.set_shape_known(true);
      for (const int64_t size : *input.shape) spec.add_shape(size);
    }
  }
  if (prepared_.outputs.empty()) {
    for (const formats::SignatureTensor& output : signature->outputs) {
      prepared_.outputs.push_back(output.tensor);
    }
  }
  signature_ = signature->key;
  prepared_.remarks.push_back(absl::StrCat(
      "Inputs and outputs are those of signature '", signature->key,
      "': ", absl::StrJoin(prepared_.outputs, ", "), "."));
  return absl::OkStatus();
}

// Signatures may list inputs that these outputs do not need.
void DropUnneededInputs(const tensorflow::GraphDef& graph,
                        PreparedModel* prepared) {
  std::vector<v1::TensorSpec> needed;
  for (v1::TensorSpec& spec : prepared->inputs) {
    const std::string node = spec.name().substr(0, spec.name().rfind(':'));
    bool found = false;
    for (const auto& def : graph.node()) found |= def.name() == node;
    if (found) {
      needed.push_back(std::move(spec));
    } else {
      prepared->remarks.push_back(absl::StrCat(
          "Input '", spec.name(), "' is not needed for the outputs."));
    }
  }
  prepared->inputs = std::move(needed);
}

absl::Status Preparer::FreezeIt(formats::FreezeSource opened) {
  formats::FreezeOptions options;
  options.outputs = prepared_.outputs;
  // Variables that are not saved: what a loader would run.
  if (!opened.init_op.empty()) options.initializers = {opened.init_op};
  options.evaluate = inspect::EvaluateConstant;
  absl::StatusOr<formats::FrozenGraph> frozen =
      formats::Freeze(std::move(opened), options);
  if (!frozen.ok()) {
    return Annotate(frozen.status(), absl::StrCat("freezing ", what_));
  }
  if (source_.inputs.empty()) DropUnneededInputs(frozen->graph, &prepared_);
  OPTFARM_RETURN_IF_ERROR(MakeFolder());
  prepared_.path = JoinPath(folder_, absl::StrCat(StemOf(source_.path), ".pb"));
  OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(frozen->graph, prepared_.path));
  FillOrigin(frozen->converted_variables);
  prepared_.remarks.push_back(absl::StrCat(
      "Froze ", frozen->converted_variables, " variables of ", what_, "."));
  for (std::string& remark : frozen->remarks) {
    prepared_.remarks.push_back(std::move(remark));
  }
  return absl::OkStatus();
}

void Preparer::FillOrigin(int variables) {
  v1::ModelOrigin& origin = prepared_.origin.emplace();
  origin.set_source(NameOf(source_.path));
  if (!source_.checkpoint.empty()) {
    origin.set_checkpoint(NameOf(source_.checkpoint));
  }
  for (const std::string& tag : tags_) origin.add_tags(tag);
  origin.set_signature(signature_);
  origin.set_variables(variables);
}

absl::StatusOr<PreparedModel> Preparer::Run() {
  const FileKind kind = KindOf(source_.path);
  const bool is_saved_model = formats::IsSavedModelFolder(source_.path) ||
                              kind == FileKind::kZip ||
                              kind == FileKind::kTar || kind == FileKind::kGzip;
  if (!is_saved_model && !source_.tags.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tags choose among a SavedModel's graphs; '",
                     source_.path, "' is none"));
  }
  if (!is_saved_model && source_.checkpoint.empty()) {
    if (!source_.signature.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--signature: '", source_.path,
                       "' has no signatures; SavedModels and MetaGraphs have"));
    }
    prepared_.path = source_.path;
    prepared_.inputs = source_.inputs;
    prepared_.outputs = source_.outputs;
    return std::move(prepared_);
  }
  OPTFARM_ASSIGN_OR_RETURN(formats::FreezeSource opened, Open(kind));
  if (is_saved_model) {
    const auto& tags = opened.meta.meta_info_def().tags();
    tags_.assign(tags.begin(), tags.end());
  }
  OPTFARM_RETURN_IF_ERROR(FillFromSignature(opened));
  OPTFARM_RETURN_IF_ERROR(FreezeIt(std::move(opened)));
  // What was unpacked is not needed any more.
  if (!unpacked_.empty()) {
    OPTFARM_RETURN_IF_ERROR(RemoveAll(JoinPath(folder_, "archive")));
  }
  return std::move(prepared_);
}

}  // namespace

absl::StatusOr<PreparedModel> PrepareModel(const ModelSource& source) {
  return Preparer(source).Run();
}

}  // namespace optfarm::client_cli
