// Measures what the built-in recipes do to the answers of the shared models and
// writes docs/accuracy.md.
//
//   accuracy --shared=../shared --page=docs/accuracy.md
//   accuracy --models=flowers,cifar --recipes=int8     a part; the rest of the
//                                                      page stays as it was
//
// A model's data are parted in two. The optimizer is given the calibration part
// alone, without labels; this program then runs original and result on the
// other part and compares them itself. Rows are kept in --results.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/attr.h"
#include "engine/optimize/judging/confidence.h"
#include "engine/optimize/judging/detections.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/optimize/report/compressed_size.h"
#include "engine/runtime/session/session.h"
#include "tests/bench/accuracy_cases.h"
#include "tests/bench/accuracy_row.h"

namespace optfarm::bench {
namespace {

using runtime::Session;
using runtime::Tensor;
using Outputs = std::vector<Tensor>;

struct Options {
  std::string shared;
  std::string page;
  std::string results;
  std::vector<std::string> models;
  std::vector<std::string> recipes;
  int threads = 2;
  // Also prints what each job tried and which layers are worst.
  bool verbose = false;
};

absl::StatusOr<graph::Graph> Load(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadGraphDef(path));
  return graph::Graph::FromDef(std::move(def));
}

absl::StatusOr<std::vector<graph::TensorName>> OutputNames(
    const AccuracyCase& c) {
  std::vector<graph::TensorName> outputs;
  for (const std::string& name : c.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(outputs.emplace_back(),
                             graph::ParseTensorName(name));
  }
  return outputs;
}

using MaybeDetector = std::optional<optimize::Detector>;

// What the graph answers for the measured samples, in their order; a detector's
// raw tensors come behind the outputs.
absl::StatusOr<std::vector<Outputs>> Answers(const graph::Graph& graph,
                                             const AccuracyCase& c,
                                             const MaybeDetector& detector,
                                             const AccuracySamples& data,
                                             int threads) {
  std::vector<graph::TensorName> inputs;
  for (const auto& input : c.inputs) inputs.push_back(input.name);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<graph::TensorName> outputs,
                           OutputNames(c));
  if (detector.has_value()) {
    outputs.insert(outputs.end(), detector->raw.begin(), detector->raw.end());
  }
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(graph, inputs, outputs, options));
  std::vector<absl::StatusOr<Outputs>> found(data.measured.size(), Outputs());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < found.size(); i = next++) {
      found[i] = session->Run(data.samples[data.measured[i]]);
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  std::vector<Outputs> answers;
  for (auto& outputs_of : found) {
    OPTFARM_ASSIGN_OR_RETURN(answers.emplace_back(), std::move(outputs_of));
  }
  return answers;
}

// Writes the calibration part where the optimizer finds it.
absl::Status WriteCalibration(const AccuracyCase& c,
                              const AccuracySamples& data,
                              const std::string& folder,
                              optimize::OptimizeRequest* request) {
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    const std::string path = JoinPath(folder, absl::StrCat("input", k, ".npy"));
    tensorflow::TensorProto array = data.samples[0][k].ToProto();
    // Scalars and what never changes are fed with every sample.
    if (k == 0) {
      array.clear_tensor_content();
      auto* shape = array.mutable_tensor_shape();
      shape->Clear();
      shape->add_dim()->set_size(static_cast<int64_t>(data.calibration.size()));
      for (const int64_t dim : data.samples[0][k].shape().dims()) {
        shape->add_dim()->set_size(dim);
      }
      for (const int64_t i : data.calibration) {
        const Tensor& value = data.samples[i][k];
        array.mutable_tensor_content()->append(
            static_cast<const char*>(value.raw()),
            value.num_elements() * runtime::ElementSize(value.dtype()));
      }
    }
    OPTFARM_RETURN_IF_ERROR(formats::SaveNpy(array, path));
    request->data.AddInput(graph::ToString(c.inputs[k].name), path);
    v1::TensorSpec& spec = request->inputs.emplace_back();
    spec.set_name(graph::ToString(c.inputs[k].name));
    spec.set_dtype(graph::DataTypeName(c.inputs[k].dtype));
    spec.set_shape_known(true);
    for (const int64_t dim : *c.inputs[k].shape) spec.add_shape(dim);
  }
  return absl::OkStatus();
}

bool HaveSameShapes(const Outputs& a, const Outputs& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!(a[k].shape() == b[k].shape())) return false;
  }
  return true;
}

void CompareAnswers(const AccuracyCase& c, const AccuracySamples& data,
                    const MaybeDetector& detector,
                    const std::vector<Outputs>& expected,
                    const std::vector<Outputs>& answers, AccuracyRow* row) {
  std::vector<optimize::TensorComparer> comparers(expected[0].size());
  optimize::AccuracyCounter float_counter, counter;
  optimize::PairedCounts pairs;
  size_t same_shapes = 0;
  optimize::DetectionComparer detections;
  // A list that is sorted cannot be compared place by place.
  const size_t first = detector.has_value() ? c.outputs.size() : 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (c.finds_things && !HaveSameShapes(expected[i], answers[i])) continue;
    ++same_shapes;
    if (detector.has_value()) {
      detections.Add(*detector, expected[i], answers[i]);
    }
    for (size_t k = first; k < expected[i].size(); ++k) {
      const absl::Status status =
          comparers[k].Add(expected[i][k], answers[i][k]);
      if (!status.ok()) row->error = std::string(status.message());
    }
    const int64_t label =
        data.labels.empty() ? -1 : data.labels[data.measured[i]];
    if (label < 0) continue;
    float_counter.Add(expected[i][0], label);
    counter.Add(answers[i][0], label);
    const auto is_right = [&](const Tensor& scores) {
      return optimize::LargestElements(scores.flat<float>(), 1)[0] == label;
    };
    const bool before = is_right(expected[i][0]);
    const bool after = is_right(answers[i][0]);
    ++pairs.samples;
    pairs.only_first_right += before && !after;
    pairs.only_second_right += after && !before;
  }
  row->measured_samples = static_cast<int64_t>(expected.size());
  if (pairs.samples > 0) {
    row->float_top1 = float_counter.Result().top1();
    row->top1 = counter.Result().top1();
    const optimize::Interval interval = optimize::PairedInterval(pairs);
    row->loss_low = 100 * interval.low;
    row->loss_high = 100 * interval.high;
  }
  row->snr_db = 1e9;
  for (size_t k = first; k < comparers.size(); ++k) {
    const v1::TensorComparison result = comparers[k].Result();
    row->snr_db = std::min(row->snr_db, result.snr_db());
    if (comparers.size() == 1) row->agreement = result.top1_agreement();
  }
  if (detector.has_value()) {
    const v1::DetectionComparison found = detections.Result();
    row->agreement = static_cast<double>(found.found()) /
                     std::max<double>(1, found.float_detections());
    row->detections = optimize::Describe(found);
  }
  if (c.finds_things) {
    row->agreement =
        static_cast<double>(same_shapes) / static_cast<double>(expected.size());
  }
}

// Counts layers and the reasons of those in float.
void CountLayers(const graph::Graph& graph, const v1::Report& report,
                 AccuracyRow* row) {
  std::map<std::string, std::string> skipped;
  for (const v1::TransformStats& step : report.transforms()) {
    if (step.name() != "quantize_nodes" && step.name() != "quantize_layers") {
      continue;
    }
    for (const v1::SkippedMatch& skip : step.skipped()) {
      skipped[skip.node()] = skip.reason();
    }
  }
  std::map<std::string, int> reasons;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    // Whole layers are named by their products.
    const std::string op = node.op().substr(0, node.op().find("WithBias"));
    const bool is_integer = op.starts_with("Quantized");
    if (op.ends_with("Conv2D") || op.find("Conv2DNative") != op.npos ||
        op.find("DepthwiseConv2d") != op.npos || op == "Conv2DBackpropInput") {
      ++row->convolutions;
      row->integer_convolutions += is_integer;
    } else if (op.ends_with("MatMul")) {
      ++row->products;
      row->integer_products += is_integer;
    } else {
      continue;
    }
    if (is_integer) continue;
    const auto found = skipped.find(node.name());
    std::string reason = "moved back by the search, or too few weights";
    if (found != skipped.end()) {
      reason = found->second;
    } else if (op == "Conv2DBackpropInput" || op.starts_with("Depthwise")) {
      reason = absl::StrCat("there is no 8-bit ", op, " in this chain");
    }
    ++reasons[absl::StrCat(op, ": ", reason)];
  }
  std::vector<std::string> texts;
  for (const auto& [reason, count] : reasons) {
    texts.push_back(absl::StrCat(count, " ", reason));
  }
  row->float_layers = absl::StrJoin(texts, "; ");
}

void ShowReport(const v1::Report& report) {
  for (const std::string& attempt : report.attempts()) {
    std::printf("  tried: %s\n", attempt.c_str());
  }
  for (int i = 0; i < std::min(8, report.layers_compared_size()); ++i) {
    const v1::TensorComparison& layer = report.layers_compared(i);
    std::printf("  %6.1f dB %-16s %s\n", layer.snr_db(), layer.op().c_str(),
                layer.name().c_str());
  }
}

// ERRORS: whatever hinders the measurement; it goes into the row.
absl::Status Measure(const AccuracyCase& c, const AccuracySamples& data,
                     const MaybeDetector& detector,
                     const std::vector<Outputs>& expected,
                     const Options& options, AccuracyRow* row) {
  optimize::OptimizeRequest request;
  OPTFARM_ASSIGN_OR_RETURN(request.recipe, optimize::LoadRecipe(row->recipe));
  request.model_path = JoinPath(options.shared, c.model);
  request.outputs = c.outputs;
  request.threads = options.threads;
  OPTFARM_ASSIGN_OR_RETURN(const std::string path,
                           MakeTemporaryFolder("accuracy"));
  const ScopedFolder folder(path);
  OPTFARM_RETURN_IF_ERROR(WriteCalibration(c, data, path, &request));
  request.out_folder = JoinPath(path, "out");
  OPTFARM_RETURN_IF_ERROR(MakeFolders(request.out_folder));
  OPTFARM_ASSIGN_OR_RETURN(const v1::Report report,
                           optimize::RunOptimize(request, nullptr));
  const std::string result = JoinPath(request.out_folder, "optimized.pb");
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph, Load(result));
  OPTFARM_ASSIGN_OR_RETURN(const auto answers,
                           Answers(graph, c, detector, data, options.threads));
  CompareAnswers(c, data, detector, expected, answers, row);
  CountLayers(graph, report, row);
  if (options.verbose) ShowReport(report);
  OPTFARM_ASSIGN_OR_RETURN(const std::string before,
                           ReadFile(request.model_path));
  OPTFARM_ASSIGN_OR_RETURN(const std::string after, ReadFile(result));
  row->bytes_before = static_cast<int64_t>(before.size());
  row->bytes_after = static_cast<int64_t>(after.size());
  OPTFARM_ASSIGN_OR_RETURN(row->gzip_before, optimize::GzipSize(before));
  OPTFARM_ASSIGN_OR_RETURN(row->gzip_after, optimize::GzipSize(after));
  OPTFARM_ASSIGN_OR_RETURN(row->zstd_after, optimize::ZstdSize(after));
  row->attempt =
      report.attempts().empty()
          ? "the first"
          : absl::StrCat("after ", report.attempts_size(), " others");
  row->passed = report.passed();
  row->seconds = report.seconds();
  return absl::OkStatus();
}

void Show(const AccuracyRow& row) {
  std::printf(
      "%-22s %-20s float %6.2f  top-1 %6.2f  agree %6.4f  snr %6.2f  size "
      "%.3f  conv %d/%d  matmul %d/%d  %s  %.1fs %s%s\n",
      row.model.c_str(), row.recipe.c_str(), row.float_top1, row.top1,
      row.agreement, row.snr_db,
      row.bytes_before > 0 ? static_cast<double>(row.bytes_after) /
                                 static_cast<double>(row.bytes_before)
                           : 0.0,
      row.integer_convolutions, row.convolutions, row.integer_products,
      row.products, row.attempt.c_str(), row.seconds, row.detections.c_str(),
      row.error.c_str());
  std::fflush(stdout);
}

absl::Status MeasureModel(const AccuracyCase& c, const Options& options,
                          AccuracyRows* rows) {
  OPTFARM_ASSIGN_OR_RETURN(const AccuracySamples data,
                           LoadSamples(c, options.shared));
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph original,
                           Load(JoinPath(options.shared, c.model)));
  OPTFARM_ASSIGN_OR_RETURN(const auto outputs, OutputNames(c));
  const MaybeDetector detector = optimize::FindDetector(original, outputs);
  const auto expected = Answers(original, c, detector, data, options.threads);
  for (const std::string& recipe : options.recipes) {
    AccuracyRow row;
    row.model = c.name;
    row.recipe = recipe;
    row.calibration_samples = static_cast<int64_t>(data.calibration.size());
    const absl::Status status =
        expected.ok() ? Measure(c, data, detector, *expected, options, &row)
                      : expected.status();
    if (!status.ok()) row.error = std::string(status.message());
    Show(row);
    (*rows)[{c.name, recipe}] = row;
    // At once, so that a run that is broken off loses nothing.
    OPTFARM_RETURN_IF_ERROR(
        WriteFileAtomically(options.results, PrintRows(*rows)));
  }
  return absl::OkStatus();
}

absl::Status Run(Options options) {
  AccuracyRows rows;
  if (Exists(options.results)) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.results));
    OPTFARM_ASSIGN_OR_RETURN(rows, ParseRows(text));
  }
  if (options.recipes.empty()) options.recipes = optimize::BuiltInRecipeNames();
  for (const AccuracyCase& c : AccuracyCases()) {
    if (!options.models.empty() &&
        std::find(options.models.begin(), options.models.end(), c.name) ==
            options.models.end()) {
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(Annotate(MeasureModel(c, options, &rows), c.name));
  }
  if (options.page.empty()) return absl::OkStatus();
  return WriteFileAtomically(
      options.page,
      PrintAccuracyPage(rows, AccuracyCases(), optimize::BuiltInRecipeNames()));
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) {
  optfarm::bench::Options options;
  CLI::App app("Measures what the recipes do to the shared models' answers.");
  app.add_option("--shared", options.shared, "Folder of models and data")
      ->required();
  app.add_option("--page", options.page, "Page to write; none: nothing");
  app.add_option("--results", options.results, "File that keeps the rows")
      ->default_val("build/accuracy.tsv");
  app.add_option("--models", options.models, "Only these")->delimiter(',');
  app.add_option("--recipes", options.recipes, "Only these")->delimiter(',');
  app.add_option("--threads", options.threads, "Samples run at once")
      ->check(CLI::Range(1, 64));
  app.add_flag("--verbose", options.verbose, "Also print what was tried");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = optfarm::bench::Run(std::move(options));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
