#include "engine/optimize/optimize_job.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/model_notes.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/verify.h"
#include "engine/optimize/calibration/calibration.h"
#include "engine/optimize/check_sample.h"
#include "engine/optimize/optimizer.h"
#include "engine/optimize/quantized_model.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/optimize/report/compressed_size.h"
#include "engine/optimize/report/exports.h"
#include "engine/optimize/report/runtime_support.h"
#include "engine/optimize/report_writer.h"
#include "engine/optimize/samples/array_file.h"
#include "engine/optimize/samples/data_check.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/normalization.h"
#include "engine/optimize/samples/sample_files.h"
#include "engine/transforms/layout/lay_out_model.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::optimize {
namespace {

constexpr int64_t kRandomSamples = 32;
// UNITS: bytes. Larger files are not packed to see how small they become.
constexpr int64_t kMostPackedBytes = int64_t{512} << 20;

// What the file holds, checked.
struct Model {
  // Without the Transposes that a reader of another format added.
  graph::Graph graph;
  // Of another format than TensorFlow's.
  bool is_lowered = false;
  int64_t bytes = 0;
  std::string sha256;
  graph::GraphIo io;
  // What its file says of pictures and classes.
  graph::ModelNotes notes;
};

absl::StatusOr<graph::InputRequest> ToInputRequest(const v1::TensorSpec& spec) {
  graph::InputRequest request;
  request.name = spec.name();
  if (!spec.dtype().empty()) {
    OPTFARM_ASSIGN_OR_RETURN(request.dtype, graph::ParseDataType(spec.dtype()));
  }
  if (spec.shape_known()) {
    tensorflow::TensorShapeProto shape;
    for (const int64_t dim : spec.shape()) shape.add_dim()->set_size(dim);
    OPTFARM_ASSIGN_OR_RETURN(request.shape,
                             graph::PartialShape::FromProto(shape));
  }
  return request;
}

// The inputs the user named; an array that comes without a shape in the
// request says what one sample looks like.
absl::StatusOr<std::vector<graph::InputRequest>> InputsFromArrays(
    const OptimizeRequest& request, const graph::Graph& graph) {
  std::vector<graph::InputRequest> inputs;
  for (const v1::TensorSpec& spec : request.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(inputs.emplace_back(), ToInputRequest(spec));
  }
  for (int i = 0; i < request.data.dataset.sources_size(); ++i) {
    const v1::DataSource& source = request.data.dataset.sources(i);
    const std::string& name = source.input();
    if (source.role() != v1::DataSource::INPUT || name.empty()) continue;
    const std::string path = request.data.PathOf(i);
    // Of a record the features tell no shape.
    if (IsRecordsName(path)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto array,
                             LoadArray(path, source.member()));
    auto found =
        std::find_if(inputs.begin(), inputs.end(),
                     [&name](const auto& known) { return known.name == name; });
    if (found == inputs.end()) {
      found = inputs.insert(inputs.end(), graph::InputRequest{name, {}, {}});
    }
    if (found->shape.has_value()) continue;
    tensorflow::TensorShapeProto shape = array.tensor_shape();
    const bool is_whole = source.layout() == v1::DataSource::CONSTANT;
    if (shape.dim_size() > 0 && !is_whole) {
      shape.mutable_dim()->DeleteSubrange(0, 1);
    }
    OPTFARM_ASSIGN_OR_RETURN(found->shape,
                             graph::PartialShape::FromProto(shape));
  }
  return inputs;
}

absl::StatusOr<graph::GraphIo> Infer(const OptimizeRequest& request,
                                     const graph::Graph& graph) {
  graph::IoRequest wanted;
  wanted.outputs = request.outputs;
  for (const v1::TensorSpec& spec : request.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(wanted.inputs.emplace_back(),
                             ToInputRequest(spec));
  }
  absl::StatusOr<graph::GraphIo> io = graph::InferIo(graph, wanted);
  if (io.status().code() != absl::StatusCode::kFailedPrecondition ||
      request.data.Find(v1::DataSource::INPUT) < 0) {
    return io;
  }
  // The graph does not tell a shape; the data may.
  OPTFARM_ASSIGN_OR_RETURN(wanted.inputs, InputsFromArrays(request, graph));
  absl::StatusOr<graph::GraphIo> from_data = graph::InferIo(graph, wanted);
  return from_data.ok() ? std::move(from_data) : std::move(io);
}

absl::StatusOr<Model> LoadModel(const OptimizeRequest& request) {
  Model model;
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadModelDef(request.model_path));
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(request.model_path));
  model.bytes = static_cast<int64_t>(bytes);
  OPTFARM_ASSIGN_OR_RETURN(model.sha256, Sha256OfFile(request.model_path));
  const std::string doing =
      absl::StrCat("While checking '", BaseName(request.model_path), "'");
  model.notes = graph::ReadModelNotes(def);
  model.is_lowered = absl::c_any_of(def.node(), [](const auto& node) {
    return graph::FindAttr(node, graph::kModelFormatAttr) != nullptr;
  });
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
  if (!graph.ok()) return Annotate(graph.status(), doing);
  model.graph = *std::move(graph);
  graph::VerifyOptions options;
  options.refuse_nan = true;
  OPTFARM_RETURN_IF_ERROR(Annotate(graph::Verify(model.graph, options), doing));
  std::vector<std::string> named = request.outputs;
  for (const v1::TensorSpec& spec : request.inputs) {
    named.push_back(spec.name());
  }
  OPTFARM_RETURN_IF_ERROR(
      Annotate(transforms::LayOutModel(named, &model.graph), doing));
  OPTFARM_ASSIGN_OR_RETURN(model.io, Infer(request, model.graph));
  return model;
}

// The value of a constant scalar; nullopt for anything else.
std::optional<float> ScalarOf(const graph::Graph& graph, graph::NodeId id) {
  // Frozen variables are read through one.
  if (graph::IsIdentity(graph.node(id).op()) &&
      !graph.node(id).inputs().empty()) {
    id = graph.node(id).inputs()[0].node;
  }
  const auto value = transforms::FloatConstValue(graph.node(id));
  if (!value.ok() || value->num_elements() != 1) return std::nullopt;
  return value->flat<float>()[0];
}

// The range that a fake quantization or quantization gives to what it reads.
std::optional<std::pair<float, float>> ConstantRange(const graph::Graph& graph,
                                                     const graph::Node& node) {
  if (node.op() == "FakeQuantWithMinMaxArgs") {
    const auto min = graph::GetFloatOr(node.def(), "min", -6);
    const auto max = graph::GetFloatOr(node.def(), "max", 6);
    if (!min.ok() || !max.ok()) return std::nullopt;
    return std::pair(*min, *max);
  }
  if ((!graph::IsFakeQuantize(node.op()) && !graph::IsQuantize(node.op())) ||
      node.inputs().size() != 3) {
    return std::nullopt;
  }
  const std::optional<float> min = ScalarOf(graph, node.inputs()[1].node);
  const std::optional<float> max = ScalarOf(graph, node.inputs()[2].node);
  if (!min.has_value() || !max.has_value()) return std::nullopt;
  return std::pair(*min, *max);
}

std::vector<ModelTensor> ToModelTensors(
    absl::Span<const graph::GraphTensor> tensors, const graph::Graph& graph) {
  std::vector<ModelTensor> result;
  for (const graph::GraphTensor& tensor : tensors) {
    ModelTensor& out = result.emplace_back();
    out.name = {graph.node(tensor.tensor.node).name(), tensor.tensor.port};
    out.dtype = tensor.dtype;
    for (const graph::Use& use : graph.node(tensor.tensor.node).uses()) {
      const graph::Node& reader = graph.node(use.consumer);
      out.is_wav_file |= reader.op() == "DecodeWav";
      if (!out.trained_range.has_value()) {
        out.trained_range = ConstantRange(graph, reader);
      }
    }
    if (tensor.shape.has_rank()) {
      out.shape.emplace();
      for (int i = 0; i < tensor.shape.rank(); ++i) {
        out.shape->push_back(tensor.shape.dim(i));
      }
    }
  }
  return result;
}

std::vector<graph::TensorName> NamesOf(absl::Span<const ModelTensor> tensors) {
  std::vector<graph::TensorName> names;
  for (const ModelTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

absl::StatusOr<Dataset> OpenData(const OptimizeRequest& request,
                                 const v1::Preprocessing& preprocessing,
                                 absl::Span<const ModelTensor> inputs) {
  const v1::Recipe& recipe = request.recipe;
  if (request.data.HasSamples()) {
    return Dataset::Open(request.data, preprocessing, inputs);
  }
  if (recipe.calibration().required()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Recipe '", recipe.name(),
                     "' needs calibration data; give --calibration=FOLDER or "
                     "--calibration=NAME=FILE.npy"));
  }
  if (request.data.Find(v1::DataSource::LABELS) >= 0) {
    return absl::InvalidArgumentError(
        "Labels are given without the samples they belong to; give "
        "--calibration too");
  }
  if (!recipe.verification().allow_random_inputs()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Without data the result of recipe '", recipe.name(),
                     "' cannot be verified; give --calibration=FOLDER or "
                     "--calibration=NAME=FILE.npy, or set "
                     "verification.allow_random_inputs in the recipe"));
  }
  return Dataset::MakeRandom(inputs, kRandomSamples,
                             recipe.calibration().seed());
}

// Data that look wrong may be why a value could not be quantized.
absl::Status WithSuspicions(const absl::Status& status,
                            const std::vector<std::string>& suspicions) {
  if (suspicions.empty() || !absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      status.message(), ". About the data: ", absl::StrJoin(suspicions, " ")));
}

bool HasHalves(const Attempt& attempt) {
  const auto ids = attempt.graph.Ids();
  return std::any_of(ids.begin(), ids.end(), [&](graph::NodeId id) {
    const graph::Node& node = attempt.graph.node(id);
    const auto from =
        graph::GetTypeOr(node.def(), "SrcT", tensorflow::DT_INVALID);
    return graph::IsCast(node.op()) && from.ok() &&
           *from == tensorflow::DT_HALF;
  });
}

std::string WhyLessReadable(const Attempt& best, const OptimizerInput& job) {
  const double original =
      static_cast<double>(std::max<int64_t>(job.original_bytes, 1));
  std::string text = absl::StrFormat(
      "So that the file is at most %.4g times the original's and not %.4g "
      "times, small constants were put together in a few%s",
      job.recipe->file_size().aim_ratio(),
      static_cast<double>(best.readable_bytes) / original,
      HasHalves(best) ? ", those of 8-bit layers as 16-bit floats" : "");
  const bool has_names =
      transforms::MakeNameMap(best.pipeline.steps, best.graph).empty();
  return absl::StrCat(
      text, has_names
                ? "."
                : absl::StrCat(", and nodes got names that say nothing; ",
                               transforms::kNameMapFile, " has the old ones. ",
                               "file_size.shorten_names in the recipe says "
                               "whether that may be done."));
}

// Warnings about the data and what came of it.
void AddWarnings(const Dataset& dataset,
                 const std::vector<std::string>& suspicions,
                 const SampleReader& reader, const Optimizer& optimizer,
                 const Attempt& best, const OptimizerInput& job,
                 v1::Report* report) {
  const auto warn = [report](std::string text) {
    report->add_warnings(std::move(text));
  };
  if (dataset.is_random()) {
    warn(
        "No calibration data was given: the result was compared on made-up "
        "random inputs, which says little about real ones, and nothing was "
        "calibrated. Give --calibration before you ship this.");
  }
  for (const std::string& text : dataset.warnings()) warn(text);
  for (const std::string& text : suspicions) warn(text);
  if (reader.bad_count() > 0) {
    constexpr int64_t kNamed = 3;
    std::vector<std::string> named;
    for (const v1::SkippedMatch& bad : reader.Bad()) {
      if (static_cast<int64_t>(named.size()) == kNamed) break;
      named.push_back(absl::StrCat(bad.node(), " (", bad.reason(), ")"));
    }
    warn(absl::StrCat(reader.bad_count(), " samples could not be used: ",
                      absl::StrJoin(named, "; "),
                      reader.bad_count() > kNamed ? "; ..." : "", "."));
  }
  for (const std::string& text : optimizer.warnings()) warn(text);
  if (optimizer.labels().guessed) {
    warn(absl::StrCat("Labels were taken from ", optimizer.labels().source,
                      "; give --labels if that is not the model's order."));
  }
  if (!optimizer.attempts().empty() &&
      !(best.spared == SparedByRecipe(job.recipe->keep_float()))) {
    warn(absl::StrFormat(
        "The recipe's own chain lost too much or could not be run; another one "
        "was taken. %d nodes or op types stay in float, and the file is %.2f "
        "times the original's.",
        report->kept_float_size(),
        static_cast<double>(best.facts.bytes_after) /
            static_cast<double>(std::max<int64_t>(job.original_bytes, 1))));
  }
  if (best.readable.has_value()) warn(WhyLessReadable(best, job));
  for (const auto& step : best.pipeline.steps) {
    for (const std::string& text : step.report.warnings) warn(text);
    if (!step.ignored_error.ok()) {
      warn(absl::StrCat("Step ", step.step, " failed and was left out: ",
                        step.ignored_error.message()));
    }
  }
}

absl::Status WriteForDevices(const Model& model, const OptimizerInput& job,
                             const Attempt& best) {
  if (model.is_lowered) {
    OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(
        model.graph.ToDef(), JoinPath(job.out_folder, kFloatGraphFile)));
  }
  if (!best.broken.ok()) return absl::OkStatus();
  return WriteCheckSamples(job, best.graph);
}

// Changes the recipe, or the model, where the model came quantized. Returns
// what the user should know of it.
absl::StatusOr<std::vector<std::string>> FitToModel(OptimizeRequest* request,
                                                    Model* model) {
  const auto names = [&](absl::Span<const graph::GraphTensor> tensors) {
    return NamesOf(ToModelTensors(tensors, model->graph));
  };
  OPTFARM_ASSIGN_OR_RETURN(FittedRecipe fitted,
                           FitRecipe(request->recipe, names(model->io.inputs),
                                     names(model->io.outputs), &model->graph));
  request->recipe = std::move(fitted.recipe);
  // Numbers of nodes may have changed.
  OPTFARM_ASSIGN_OR_RETURN(model->io, Infer(*request, model->graph));
  return std::move(fitted.notes);
}

void AddEnds(const graph::GraphIo& io, v1::Report* report) {
  for (const graph::GraphTensor& tensor : io.inputs) {
    *report->add_inputs() = ToSpec(tensor);
  }
  for (const graph::GraphTensor& tensor : io.outputs) {
    *report->add_outputs() = ToSpec(tensor);
  }
}

// Whether a result can be written in the formats without which the job fails;
// null where there are none, or where not even the model itself can.
std::function<bool(const graph::Graph&)> FormatCheck(
    const Model& model, const std::vector<v1::ModelFormat>& formats) {
  if (formats.empty() || absl::c_linear_search(formats, v1::PB)) return nullptr;
  v1::Report ends;
  AddEnds(model.io, &ends);
  const auto check = [ends, formats](const graph::Graph& graph) {
    return CanBeWritten(graph, formats, ends);
  };
  if (!check(model.graph)) return nullptr;
  return check;
}

// How samples are prepared: as the recipe says. Where neither it nor the data
// say how pictures in folders are scaled, the model's own file may; `notes`
// gets what the user should know of that.
v1::Preprocessing PreprocessingFor(const Model& model,
                                   const OptimizeRequest& request,
                                   std::vector<std::string>* notes) {
  v1::Preprocessing preprocessing =
      request.recipe.calibration().preprocessing();
  const graph::ModelNotes& file = model.notes;
  const int folder = request.data.Find(v1::DataSource::SAMPLES);
  if (file.mean.empty() || folder < 0 || model.io.inputs.empty() ||
      model.io.inputs[0].dtype != tensorflow::DT_FLOAT ||
      !model.io.inputs[0].shape.has_rank() ||
      model.io.inputs[0].shape.rank() != 4 ||
      !NormalizationOf(preprocessing, request.data.dataset.sources(folder))
           .is_default) {
    return preprocessing;
  }
  preprocessing.mutable_mean()->Assign(file.mean.begin(), file.mean.end());
  preprocessing.mutable_std()->Assign(file.std.begin(), file.std.end());
  notes->push_back(absl::StrCat(
      "Pictures were fed as (value - ", absl::StrJoin(file.mean, ","), ") / ",
      absl::StrJoin(file.std, ","), ", as the model's file says."));
  return preprocessing;
}

}  // namespace

absl::StatusOr<v1::Report> RunOptimize(const OptimizeRequest& asked,
                                       const OptimizeProgressFn& progress) {
  const absl::Time start = absl::Now();
  double reached = 0;
  const auto tell = [&](absl::string_view stage, double fraction) {
    reached = std::max(reached, fraction);
    if (progress) progress({std::string(stage), reached});
  };
  tell("loading", 0);
  OPTFARM_RETURN_IF_ERROR(CheckRecipe(asked.recipe));
  OPTFARM_ASSIGN_OR_RETURN(Model model, LoadModel(asked));
  OptimizeRequest request = asked;
  OPTFARM_ASSIGN_OR_RETURN(std::vector<std::string> notes,
                           FitToModel(&request, &model));
  const v1::Preprocessing preprocessing =
      PreprocessingFor(model, request, &notes);
  const std::vector<ModelTensor> inputs =
      ToModelTensors(model.io.inputs, model.graph);
  const std::vector<ModelTensor> outputs =
      ToModelTensors(model.io.outputs, model.graph);
  OPTFARM_ASSIGN_OR_RETURN(const Dataset dataset,
                           OpenData(request, preprocessing, inputs));
  SampleReader reader(dataset);

  OptimizerInput job;
  job.original = &model.graph;
  job.original_bytes = model.bytes;
  job.inputs = NamesOf(inputs);
  job.outputs = NamesOf(outputs);
  job.recipe = &request.recipe;
  job.dataset = &dataset;
  job.reader = &reader;
  job.data = &request.data;
  job.class_names = model.notes.labels;
  if (!dataset.is_random()) {
    job.open_data = [&](const v1::Preprocessing& other) {
      return Dataset::Open(request.data, other, inputs);
    };
  }
  job.can_be_written = FormatCheck(model, request.out_formats);
  job.out_folder = request.out_folder;
  job.threads = std::max(1, request.threads);
  job.progress = tell;
  Optimizer optimizer(job);
  OPTFARM_RETURN_IF_ERROR(optimizer.MeasureOriginal());
  const std::vector<std::string> suspicions =
      dataset.is_random() ? std::vector<std::string>()
                          : CheckData(inputs, dataset.size(), &reader);
  absl::StatusOr<Attempt> found = optimizer.FindBest();
  if (!found.ok()) return WithSuspicions(found.status(), suspicions);
  const Attempt best = *std::move(found);

  v1::Report report;
  FillReport(job, best, reader, &report);
  for (const std::string& text : optimizer.attempts()) {
    report.add_attempts(text);
  }
  for (const v1::SearchStep& step : optimizer.search()) {
    *report.add_search() = step;
  }
  report.mutable_model()->set_sha256(model.sha256);
  report.mutable_model()->set_size_bytes(model.bytes);
  report.set_tool_version(request.tool_version);
  if (request.model_origin)
    *report.mutable_model_origin() = *request.model_origin;
  AddEnds(model.io, &report);
  for (const std::string& text : dataset.fed()) report.add_fed(text);
  std::vector<v1::TensorComparison> layers;
  const v1::Verification& wanted = request.recipe.verification();
  if (wanted.per_layer() || wanted.sensitivity()) {
    OPTFARM_ASSIGN_OR_RETURN(layers, optimizer.CompareByLayer(best));
    AddLayers(layers, &report);
  }
  if (wanted.sensitivity()) {
    OPTFARM_ASSIGN_OR_RETURN(const auto alone,
                             optimizer.MeasureLayersAlone(best, layers));
    report.mutable_sensitivity()->Assign(alone.begin(), alone.end());
  }
  if (wanted.histograms_size() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const auto histograms,
                             optimizer.MeasureDistributions(best));
    report.mutable_histograms()->Assign(histograms.begin(), histograms.end());
  }
  if (wanted.steps() && best.broken.ok()) {
    OPTFARM_ASSIGN_OR_RETURN(const auto steps, optimizer.ListSteps(best));
    report.mutable_steps()->Assign(steps.begin(), steps.end());
  }
  for (const std::string& note : notes) report.add_warnings(note);
  AddWarnings(dataset, suspicions, reader, optimizer, best, job, &report);
  if (best.broken.ok()) AddRuntimeSupport(best.graph, model.io, &report);
  for (const std::string& reason : optimizer.distrust()) {
    report.add_distrust(reason);
  }
  for (const std::string& note : model.io.notes) report.add_warnings(note);
  tell("writing", 0.95);
  formats::TfliteMetadata metadata =
      MetadataOf(preprocessing, request.data, report);
  if (metadata.labels.empty()) metadata.labels = model.notes.labels;
  OPTFARM_RETURN_IF_ERROR(WriteExports(best.graph, request.out_formats,
                                       request.out_folder, metadata, &report));
  if (request.is_for_devices) {
    OPTFARM_RETURN_IF_ERROR(WriteForDevices(model, job, best));
  }
  if (model.bytes <= kMostPackedBytes) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                             ReadFile(request.model_path));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t packed, GzipSize(bytes));
    report.mutable_size_before()->set_gzip_bytes(packed);
    OPTFARM_ASSIGN_OR_RETURN(const int64_t zstd, ZstdSize(bytes));
    report.mutable_size_before()->set_zstd_bytes(zstd);
  }
  report.set_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  OPTFARM_RETURN_IF_ERROR(
      WriteArtifacts(request.out_folder, job, best, layers, &report));
  tell("done", 1);
  return report;
}

}  // namespace optfarm::optimize
