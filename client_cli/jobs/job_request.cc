#include "client_cli/jobs/job_request.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/flags/tensor_spec_flag.h"
#include "client_cli/jobs/calibration_files.h"
#include "client_cli/jobs/model_source.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/verify.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/optimize/samples/array_file.h"
#include "engine/optimize/samples/sample_files.h"

namespace optfarm::client_cli {
namespace {

absl::Status CheckFile(const std::string& path) {
  if (IsFolder(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a folder, not a file"));
  }
  if (!Exists(path)) {
    return absl::NotFoundError(absl::StrCat("there is no file '", path, "'"));
  }
  return FileSize(path).status();
}

// Whether it is clear what to feed and what to ask for: what is named exists,
// and the graph tells the rest.
absl::Status CheckInputsAndOutputs(const JobRequest& request,
                                   const graph::Graph& graph) {
  graph::IoRequest wanted;
  wanted.outputs = request.outputs;
  for (const v1::TensorSpec& spec : request.inputs) {
    graph::InputRequest& input = wanted.inputs.emplace_back();
    input.name = spec.name();
    if (!spec.shape_known()) continue;
    input.shape = graph::PartialShape(
        std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  }
  const absl::Status status = graph::InferIo(graph, wanted).status();
  // A shape that the graph does not tell may be in the arrays.
  if (status.code() == absl::StatusCode::kFailedPrecondition &&
      !request.calibration_arrays.empty()) {
    return absl::OkStatus();
  }
  return status;
}

// Looks at the model as the worker will: what is wrong here need not travel.
absl::Status CheckModel(const JobRequest& request) {
  absl::StatusOr<tensorflow::GraphDef> def =
      formats::LoadGraphDef(request.model_path);
  if (!def.ok()) return Annotate(def.status(), "MODEL");
  const std::string what = absl::StrCat("MODEL '", request.model_path, "'");
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(*std::move(def));
  if (!graph.ok()) return Annotate(graph.status(), what);
  graph::VerifyOptions options;
  options.refuse_nan = true;
  OPTFARM_RETURN_IF_ERROR(Annotate(graph::Verify(*graph, options), what));
  return CheckInputsAndOutputs(request, *graph);
}

// By the name alone: what is in the file is checked where it is read.
bool IsArrayName(const std::string& file) {
  const std::string extension = LowerExtension(file);
  return extension == "npy" || extension == "npz" ||
         optimize::IsRecordsName(file) ||
         BaseName(file).find("-idx") != std::string::npos ||
         extension.starts_with("idx");
}

absl::Status AddCalibration(const std::string& value, JobRequest* request) {
  const std::string path = ExpandHome(value);
  if (IsFolder(path)) {
    if (!request->calibration_folder.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", value, "' is a second folder; put the files into one"));
    }
    request->calibration_folder = path;
    return FindCalibrationFiles(path).status();
  }
  const size_t equals = value.find('=');
  const bool named = equals != std::string::npos && !Exists(path);
  const std::string name = named ? value.substr(0, equals) : "";
  const std::string given = named ? ExpandHome(value.substr(equals + 1)) : path;
  const std::string file = optimize::SplitMember(given).file;
  if (!IsArrayName(file) && !Exists(file)) {
    return absl::NotFoundError(absl::StrCat(
        "there is no folder or file '", file,
        "'; give a folder of pictures or sounds, or NAME=FILE.npy"));
  }
  if (!IsArrayName(file)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", file,
                     "' is not an .npy, .npz, IDX ('-idx' in the name, or "
                     ".idx) or .tfrecord "
                     "file; pictures and sounds are given as a folder"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckFile(file));
  request->calibration_arrays.emplace_back(name, given);
  return absl::OkStatus();
}

absl::Status SplitOutputs(const std::vector<std::string>& values,
                          JobRequest* request) {
  for (const std::string& value : values) {
    for (absl::string_view name :
         absl::StrSplit(value, ',', absl::SkipEmpty())) {
      OPTFARM_RETURN_IF_ERROR(graph::ParseTensorName(name).status());
      request->outputs.emplace_back(name);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecipe(const JobFlags& flags, JobRequest* request) {
  absl::StatusOr<v1::Recipe> recipe =
      optimize::LoadRecipe(ExpandHome(flags.recipe));
  if (!recipe.ok()) return Annotate(recipe.status(), "--recipe");
  request->recipe = *std::move(recipe);
  v1::Verification& verification = *request->recipe.mutable_verification();
  if (flags.sensitivity) verification.set_sensitivity(true);
  for (const std::string& node : flags.histograms) {
    verification.add_histograms(node);
  }
  OPTFARM_RETURN_IF_ERROR(optimize::CheckRecipe(request->recipe));
  if (request->recipe.calibration().required() && flags.calibration.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("recipe '", flags.recipe,
                     "' needs calibration data; give --calibration=DIR with "
                     "pictures or sounds, or --calibration=INPUT=FILE.npy"));
  }
  return absl::OkStatus();
}

// Freezes the model where that is needed; a signature then tells what the user
// did not.
absl::Status Prepare(const JobFlags& flags, const std::string& scratch,
                     JobRequest* request) {
  ModelSource source;
  source.scratch = scratch;
  source.path = flags.model;
  source.checkpoint = flags.checkpoint;
  source.tags = absl::StrSplit(flags.tags, ',', absl::SkipWhitespace());
  source.signature = flags.signature;
  source.inputs = request->inputs;
  source.outputs = request->outputs;
  absl::StatusOr<PreparedModel> model = PrepareModel(source);
  if (!model.ok()) return Annotate(model.status(), "MODEL");
  request->model_path = std::move(model->path);
  request->inputs = std::move(model->inputs);
  request->outputs = std::move(model->outputs);
  request->remarks = std::move(model->remarks);
  request->model_origin = std::move(model->origin);
  request->model_folder = std::move(model->folder);
  return absl::OkStatus();
}

absl::StatusOr<JobRequest> Check(const JobFlags& flags,
                                 const std::string& scratch) {
  JobRequest request;
  request.threads = flags.threads;
  request.input_mean = flags.input_mean;
  request.input_std = flags.input_std;
  request.labels_offset = flags.labels_offset;
  if (flags.input_std && *flags.input_std == 0) {
    return absl::InvalidArgumentError("--input_std: 0 cannot be divided by");
  }
  OPTFARM_RETURN_IF_ERROR(CheckRecipe(flags, &request));
  absl::StatusOr<std::vector<v1::TensorSpec>> inputs =
      ParseTensorSpecs(flags.inputs);
  if (!inputs.ok()) return Annotate(inputs.status(), "--inputs");
  request.inputs = *std::move(inputs);
  OPTFARM_RETURN_IF_ERROR(
      Annotate(SplitOutputs(flags.outputs, &request), "--outputs"));
  for (const std::string& value : flags.calibration) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(AddCalibration(value, &request), "--calibration"));
  }
  if (!flags.labels.empty()) {
    OPTFARM_RETURN_IF_ERROR(Annotate(
        CheckFile(optimize::SplitMember(flags.labels).file), "--labels"));
    request.labels_path = flags.labels;
  }
  OPTFARM_RETURN_IF_ERROR(Prepare(flags, scratch, &request));
  OPTFARM_RETURN_IF_ERROR(CheckModel(request));
  return request;
}

}  // namespace

void JobFlags::Declare(FlagSet* flags) {
  flags->PathArgument("MODEL",
                      "A frozen TensorFlow graph, binary or text; a "
                      "SavedModel's folder or archive (zip, tar, tar.gz); or, "
                      "with --checkpoint, a graph or .meta file.",
                      &model);
  flags->Path("checkpoint", "PREFIX",
              "The values of MODEL's variables: a V2 prefix or a V1 file. The "
              "model is frozen first.",
              &checkpoint);
  flags->Text("tags", "A,B",
              "The SavedModel's graph with these tags. Default: serve, or the "
              "only one.",
              &tags);
  flags->Text("signature", "NAME",
              "The signature that defines inputs and outputs. Default: "
              "serving_default, or the only one.",
              &signature);
  flags->Text("recipe", "RECIPE",
              "A built-in recipe (optctl recipes) or a YAML file.", &recipe);
  flags->Required();
  flags->Texts("inputs", "A,B",
               "The graph's inputs, with shapes if the graph does not define "
               "them: image:1,224,224,3. Default: inferred from the graph.",
               &inputs);
  flags->Texts("outputs", "A,B",
               "The graph's outputs. Default: inferred from the graph.",
               &outputs);
  flags->Texts("calibration", "DIR|NAME=FILE.npy",
               "Sample data: a folder of JPEG, PNG, WAV or TFRecord files; or "
               "for input NAME an array whose first axis is the sample (.npy, "
               "FILE.npz:ARRAY, IDX) or a feature, FILE.tfrecord:FEATURE.",
               &calibration);
  flags->Path("labels", "FILE",
              "The samples' classes, for accuracy: numbers in the order of "
              "the files, lines 'path number' (also CSV), an .npy, or class "
              "names that match the folders. TFRecord: FILE.tfrecord:FEATURE.",
              &labels);
  constexpr int64_t kMostOffset = 1'000'000;
  flags->Integer("labels_offset",
                 "Added to each label: 1 if the model's first class is unused "
                 "and labels start at 0.",
                 &labels_offset, -kMostOffset, kMostOffset);
  flags->Switch("sensitivity",
                "Also measure each quantized layer alone: its loss of "
                "accuracy, and what it saves in size and time.",
                &sensitivity);
  flags->Texts("histogram", "NODE",
               "Also show the distribution of this node's values, before and "
               "after.",
               &histograms);
  flags->Number("input_mean", "Pictures are fed as (value - mean) / std.",
                &input_mean);
  flags->Number("input_std", "See --input_mean.", &input_std);
  flags->Integers("threads",
                  "Thread counts to benchmark. Default: 1 and 4, or 1 and all "
                  "of the device's CPUs if it has fewer.",
                  &threads);
}

absl::StatusOr<JobRequest> CheckJobFlags(const JobFlags& flags,
                                         const std::string& scratch) {
  absl::StatusOr<JobRequest> request = Check(flags, scratch);
  if (!request.ok()) return WithExitCode(request.status(), ExitCode::kUsage);
  return request;
}

}  // namespace optfarm::client_cli
