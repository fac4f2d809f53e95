#include "client_cli/jobs/job_request.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/flags/tensor_spec_flag.h"
#include "client_cli/jobs/model_source.h"
#include "client_cli/jobs/out_format.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/verify.h"
#include "engine/inspect/unset_variables.h"
#include "engine/optimize/quantized_model.h"
#include "engine/optimize/recipes/recipes.h"

namespace optfarm::client_cli {
namespace {

// A graph whose weights are elsewhere would fail in its first run.
absl::Status CheckHasWeights(const JobRequest& request,
                             const graph::Graph& graph,
                             const graph::GraphIo& io) {
  std::vector<graph::NodeId> outputs;
  for (const graph::GraphTensor& output : io.outputs) {
    outputs.push_back(output.tensor.node);
  }
  const std::vector<std::string> unset =
      inspect::FindUnsetVariables(graph, outputs);
  if (unset.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "MODEL '", request.work.model_path, "' has no weights: ", unset.size(),
      unset.size() == 1 ? " variable has" : " variables have",
      " no value, such as '", unset[0],
      "'; give the checkpoint (--checkpoint=PREFIX), or freeze the graph "
      "(optctl graph freeze)"));
}

// `status` with what the graph ends in, which the user may have meant.
absl::Status WithCandidates(const absl::Status& status,
                            const graph::Graph& graph) {
  constexpr size_t kMost = 5;
  const auto ends = graph::FindOutputs(graph);
  if (!ends.ok() || ends->empty()) return status;
  std::string names;
  for (size_t i = 0; i < ends->size() && i < kMost; ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ",
                    graph::TensorNameInFile(graph, (*ends)[i]));
  }
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; the graph ends in ",
                                   names, ends->size() > kMost ? ", ..." : ""));
}

// Whether it is clear what to feed and what to ask for: what is named exists,
// and the graph tells the rest.
absl::Status CheckInputsAndOutputs(const JobRequest& request,
                                   const graph::Graph& graph) {
  graph::IoRequest wanted;
  wanted.outputs = request.work.outputs;
  for (const v1::TensorSpec& spec : request.work.inputs) {
    graph::InputRequest& input = wanted.inputs.emplace_back();
    input.name = spec.name();
    if (!spec.shape_known()) continue;
    input.shape = graph::PartialShape(
        std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  }
  const absl::StatusOr<graph::GraphIo> io = graph::InferIo(graph, wanted);
  if (io.ok()) return CheckHasWeights(request, graph, *io);
  const absl::Status status = io.status();
  if (absl::IsNotFound(status) && !wanted.outputs.empty()) {
    return WithCandidates(status, graph);
  }
  // A shape that the graph does not tell may be in the arrays.
  if (status.code() == absl::StatusCode::kFailedPrecondition &&
      request.work.data.Find(v1::DataSource::INPUT) >= 0) {
    return absl::OkStatus();
  }
  return status;
}

// Looks at the model as the worker will: what is wrong here need not travel.
absl::Status CheckModel(const JobRequest& request) {
  absl::StatusOr<tensorflow::GraphDef> def =
      formats::LoadModelDef(request.work.model_path);
  if (!def.ok()) return Annotate(def.status(), "MODEL");
  const std::string what =
      absl::StrCat("MODEL '", request.work.model_path, "'");
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(*std::move(def));
  if (!graph.ok()) return Annotate(graph.status(), what);
  graph::VerifyOptions options;
  options.refuse_nan = true;
  OPTFARM_RETURN_IF_ERROR(Annotate(graph::Verify(*graph, options), what));
  return CheckInputsAndOutputs(request, *graph);
}

absl::Status SplitOutputs(const std::vector<std::string>& values,
                          JobRequest* request) {
  for (const std::string& value : values) {
    for (absl::string_view name :
         absl::StrSplit(value, ',', absl::SkipEmpty())) {
      OPTFARM_RETURN_IF_ERROR(graph::ParseTensorName(name).status());
      request->work.outputs.emplace_back(name);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecipe(const JobFlags& flags, JobRequest* request) {
  absl::StatusOr<v1::Recipe> recipe =
      optimize::LoadRecipe(ExpandHome(flags.recipe));
  if (!recipe.ok()) return Annotate(recipe.status(), "--recipe");
  v1::Recipe& wanted = request->work.recipe;
  wanted = *std::move(recipe);
  v1::Verification& verification = *wanted.mutable_verification();
  if (flags.dequantize) {
    OPTFARM_RETURN_IF_ERROR(optimize::BeginWithDequantizing(&wanted));
  }
  if (flags.sensitivity) verification.set_sensitivity(true);
  for (const std::string& node : flags.histograms) {
    verification.add_histograms(node);
  }
  OPTFARM_RETURN_IF_ERROR(optimize::CheckRecipe(wanted));
  if (wanted.calibration().required() && flags.data.calibration.empty()) {
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
  optimize::OptimizeRequest& work = request->work;
  source.inputs = work.inputs;
  source.outputs = work.outputs;
  absl::StatusOr<PreparedModel> model = PrepareModel(source);
  if (!model.ok()) return Annotate(model.status(), "MODEL");
  work.model_path = std::move(model->path);
  work.inputs = std::move(model->inputs);
  work.outputs = std::move(model->outputs);
  work.model_origin = std::move(model->origin);
  request->remarks.insert(request->remarks.begin(), model->remarks.begin(),
                          model->remarks.end());
  request->model_folder = std::move(model->folder);
  return absl::OkStatus();
}

absl::StatusOr<JobRequest> Check(const JobFlags& flags,
                                 const std::string& scratch) {
  JobRequest request;
  request.threads = flags.threads;
  OPTFARM_ASSIGN_OR_RETURN(const OutFormats out,
                           ParseOutFormats(flags.out_formats, flags.out_graph));
  request.work.out_formats = out.formats;
  request.out_graph_format = out.out_graph;
  OPTFARM_RETURN_IF_ERROR(CheckRecipe(flags, &request));
  absl::StatusOr<std::vector<v1::TensorSpec>> inputs =
      ParseTensorSpecs(flags.inputs);
  if (!inputs.ok()) return Annotate(inputs.status(), "--inputs");
  request.work.inputs = *std::move(inputs);
  OPTFARM_RETURN_IF_ERROR(
      Annotate(SplitOutputs(flags.outputs, &request), "--outputs"));
  OPTFARM_ASSIGN_OR_RETURN(request.work.data,
                           ReadDataFlags(flags.data, &request.remarks));
  OPTFARM_RETURN_IF_ERROR(Prepare(flags, scratch, &request));
  OPTFARM_RETURN_IF_ERROR(CheckModel(request));
  return request;
}

}  // namespace

void JobFlags::Declare(FlagSet* flags) {
  DeclareModel(flags);
  flags->Text("recipe", "RECIPE",
              "A built-in recipe (optctl recipes) or a YAML file.", &recipe);
  flags->Required();
  DeclareData(flags);
  flags->Path("out_graph", "FILE",
              "Where to write the optimized graph; as an ONNX or TensorFlow "
              "Lite model when the name ends in .onnx or .tflite.",
              &out_graph);
  flags->Writes();
  flags->Texts("out_format", "pb|onnx|tflite",
               "Also make the optimized model in this format, as "
               "optimized.onnx or optimized.tflite. The job fails if it gets "
               "none of the formats it asks for: pb,tflite means tflite "
               "where it can be.",
               &out_formats);
  flags->Switch("dequantize",
                "Turn a model that came quantized into float, and treat it as "
                "any other. Otherwise its weights, scales and zero points are "
                "kept.",
                &dequantize);
  flags->Switch("sensitivity",
                "Also measure each quantized layer alone: its loss of "
                "accuracy, and what it saves in size and time.",
                &sensitivity);
  flags->Texts("histogram", "NODE",
               "Also show the distribution of this node's values, before and "
               "after.",
               &histograms);
  flags->Integers("threads",
                  "Thread counts to benchmark. Default: 1 and 4, or 1 and all "
                  "of the device's CPUs if it has fewer.",
                  &threads);
}

void JobFlags::DeclareModel(FlagSet* flags) {
  flags->PathArgument("MODEL",
                      "A frozen TensorFlow graph, binary or text; an ONNX or "
                      "TensorFlow Lite model; a SavedModel's folder or archive "
                      "(zip, tar, tar.gz); or, with --checkpoint, a graph or "
                      ".meta file.",
                      &model);
  flags->Reads();
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
}

void JobFlags::DeclareData(FlagSet* flags) {
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
               &data.calibration);
  flags->Texts("layout", "[NAME=]samples|constant",
               "What the first axis of input NAME's array is, or of every "
               "array: the samples, or a part of one value that is fed with "
               "every sample. Default: decided by the array's shape.",
               &data.layouts);
  flags->Path("labels", "FILE",
              "The samples' classes, for accuracy: numbers in the order of "
              "the files, lines 'path number' (also CSV), an .npy, or class "
              "names that match the folders. TFRecord: FILE.tfrecord:FEATURE.",
              &data.labels);
  constexpr int64_t kMostOffset = 1'000'000;
  flags->Integer("labels_offset",
                 "Added to each label: 1 if the model's first class is unused "
                 "and labels start at 0.",
                 &data.labels_offset, -kMostOffset, kMostOffset);
  flags->Number("input_mean", "Pictures are fed as (value - mean) / std.",
                &data.input_mean);
  flags->Number("input_std", "See --input_mean.", &data.input_std);
}

absl::StatusOr<JobRequest> CheckJobFlags(const JobFlags& flags,
                                         const std::string& scratch) {
  absl::StatusOr<JobRequest> request = Check(flags, scratch);
  if (!request.ok()) return WithExitCode(request.status(), ExitCode::kUsage);
  return request;
}

}  // namespace optfarm::client_cli
