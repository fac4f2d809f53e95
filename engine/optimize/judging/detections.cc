#include "engine/optimize/judging/detections.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

constexpr float kLeastOverlap = 0.5f;

// The one output whose name has the word in it; -1 when it is not one.
int OutputNamed(absl::Span<const graph::TensorName> outputs,
                absl::string_view word) {
  int found = -1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!absl::StrContains(outputs[i].node, word)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

bool IsProduct(const graph::Node& node) {
  return graph::IsFloatProduct(node.op()) ||
         absl::StartsWith(node.op(), "Conv2DBackprop");
}

// Takes some of its input's elements, or stands at the entrance of a loop that
// does.
bool Selects(const graph::Node& node) {
  return absl::StartsWith(node.op(), "NonMaxSuppression") ||
         absl::StartsWith(node.op(), "TopK") ||
         absl::StartsWith(node.op(), "TensorArrayScatter") ||
         graph::IsEnter(node.op()) || node.op() == "Where";
}

bool PicksBoxes(const graph::Node& node) {
  return absl::StartsWith(node.op(), "NonMaxSuppression") ||
         absl::StartsWith(node.op(), "TopK");
}

// Marks whatever can be reached backwards from the nodes that are marked.
// `order` is that of computation.
void MarkSources(const Graph& graph, absl::Span<const NodeId> order,
                 std::vector<bool>* marked) {
  // Twice for what comes round a loop.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = order.size(); i-- > 0;) {
      if (!(*marked)[order[i]]) continue;
      for (const graph::Endpoint& input : graph.node(order[i]).inputs()) {
        (*marked)[input.node] = true;
      }
    }
  }
}

bool IsFloat(const graph::Node& node, int port) {
  const tensorflow::OpDef* op = graph::FindOpDef(node.op());
  if (op == nullptr) return false;
  const auto types = graph::OutputTypes(*op, node.def());
  return types.ok() && port < static_cast<int>(types->size()) &&
         (*types)[port] == tensorflow::DT_FLOAT;
}

// The tensor behind nodes that change nothing and that optimizing takes out.
graph::Endpoint Source(const Graph& graph, graph::Endpoint tensor) {
  while (graph::IsIdentity(graph.node(tensor.node).op()) &&
         !graph.node(tensor.node).inputs().empty()) {
    tensor = graph.node(tensor.node).inputs()[0];
  }
  return tensor;
}

// Float tensors of the net that nodes read which select, or lie behind such.
std::vector<graph::TensorName> FindRaw(const Graph& graph,
                                       absl::Span<const NodeId> order,
                                       const std::vector<bool>& is_needed) {
  std::vector<bool> is_net(graph.id_limit()), has_product(graph.id_limit());
  for (const NodeId id : order) is_net[id] = IsProduct(graph.node(id));
  MarkSources(graph, order, &is_net);
  std::vector<bool> selected(graph.id_limit());
  std::vector<graph::TensorName> raw;
  for (const NodeId id : order) {
    const graph::Node& node = graph.node(id);
    has_product[id] = IsProduct(node);
    if (is_net[id] && !has_product[id]) continue;
    selected[id] = !is_net[id] && Selects(node);
    for (const graph::Endpoint& input : node.inputs()) {
      if (has_product[input.node]) has_product[id] = true;
      if (selected[input.node]) selected[id] = true;
    }
    if (!selected[id] || !is_needed[id]) continue;
    for (const graph::Endpoint& input : node.inputs()) {
      const graph::Endpoint from = Source(graph, input);
      if (selected[input.node] || !has_product[from.node] ||
          !IsFloat(graph.node(from.node), from.port)) {
        continue;
      }
      graph::TensorName name = {graph.node(from.node).name(), from.port};
      if (std::find(raw.begin(), raw.end(), name) == raw.end()) {
        raw.push_back(std::move(name));
      }
    }
  }
  return raw;
}

struct Detection {
  // Two corners.
  const float* box;
  float score;
  float class_number;
};

std::vector<Detection> Detections(const Detector& detector,
                                  absl::Span<const Tensor> outputs) {
  const Tensor& boxes = outputs[detector.boxes];
  const absl::Span<const float> scores = outputs[detector.scores].flat<float>();
  const absl::Span<const float> classes =
      outputs[detector.classes].flat<float>();
  std::vector<Detection> found;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] >= DetectionComparer::kSure / 2)) continue;
    found.push_back(
        {boxes.flat<float>().data() + 4 * i, scores[i], classes[i]});
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto& a, const auto& b) { return a.score > b.score; });
  return found;
}

bool AreDetections(const Detector& detector, absl::Span<const Tensor> outputs) {
  for (const size_t place :
       {detector.boxes, detector.scores, detector.classes}) {
    if (place >= outputs.size() ||
        outputs[place].dtype() != tensorflow::DT_FLOAT) {
      return false;
    }
  }
  const Tensor& boxes = outputs[detector.boxes];
  const int64_t count = outputs[detector.scores].num_elements();
  return boxes.rank() >= 2 && boxes.dim(boxes.rank() - 1) == 4 &&
         boxes.num_elements() == 4 * count &&
         outputs[detector.classes].num_elements() == count;
}

float Area(const float* box) {
  return std::max(0.0f, box[2] - box[0]) * std::max(0.0f, box[3] - box[1]);
}

// Intersection over union.
float Overlap(const float* a, const float* b) {
  const float both[] = {std::max(a[0], b[0]), std::max(a[1], b[1]),
                        std::min(a[2], b[2]), std::min(a[3], b[3])};
  const float shared = Area(both);
  const float all = Area(a) + Area(b) - shared;
  return all > 0 ? shared / all : 0.0f;
}

// Sums over the sure detections of `from` that have a counterpart in `in`.
struct Matches {
  int64_t sure = 0;
  int64_t matched = 0;
  double overlap = 0;
  double score_change = 0;
};

Matches Match(absl::Span<const Detection> from,
              absl::Span<const Detection> in) {
  Matches matches;
  std::vector<bool> taken(in.size());
  for (const Detection& one : from) {
    if (!(one.score >= DetectionComparer::kSure)) continue;
    ++matches.sure;
    size_t best = in.size();
    float most = kLeastOverlap;
    for (size_t i = 0; i < in.size(); ++i) {
      if (taken[i] || in[i].class_number != one.class_number) continue;
      const float overlap = Overlap(one.box, in[i].box);
      if (overlap < most || (overlap == most && best < in.size())) continue;
      most = overlap;
      best = i;
    }
    if (best == in.size()) continue;
    taken[best] = true;
    ++matches.matched;
    matches.overlap += most;
    matches.score_change += std::abs(in[best].score - one.score);
  }
  return matches;
}

double Share(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

std::optional<Detector> FindDetector(
    const Graph& graph, absl::Span<const graph::TensorName> outputs) {
  const int boxes = OutputNamed(outputs, "boxes");
  const int scores = OutputNamed(outputs, "scores");
  const int classes = OutputNamed(outputs, "classes");
  if (boxes < 0 || scores < 0 || classes < 0) return std::nullopt;
  const auto order = graph::DataflowOrder(graph);
  if (!order.ok()) return std::nullopt;
  std::vector<bool> is_needed(graph.id_limit());
  for (const int place : {boxes, scores, classes}) {
    const NodeId id = graph.Find(outputs[place].node);
    if (id == graph::kNoNode) return std::nullopt;
    is_needed[id] = true;
  }
  MarkSources(graph, *order, &is_needed);
  const bool picks =
      std::any_of(order->begin(), order->end(), [&](const NodeId id) {
        return is_needed[id] && PicksBoxes(graph.node(id));
      });
  if (!picks) return std::nullopt;
  Detector detector{static_cast<size_t>(boxes), static_cast<size_t>(scores),
                    static_cast<size_t>(classes),
                    FindRaw(graph, *order, is_needed)};
  if (detector.raw.empty()) return std::nullopt;
  return detector;
}

bool DetectionComparer::Add(const Detector& detector,
                            absl::Span<const Tensor> original,
                            absl::Span<const Tensor> result) {
  if (!AreDetections(detector, original) || !AreDetections(detector, result)) {
    return false;
  }
  ++samples_;
  const std::vector<Detection> before = Detections(detector, original);
  const std::vector<Detection> after = Detections(detector, result);
  const Matches found = Match(before, after);
  original_ += found.sure;
  found_ += found.matched;
  iou_sum_ += found.overlap;
  score_change_sum_ += found.score_change;
  const Matches known = Match(after, before);
  result_ += known.sure;
  extra_ += known.sure - known.matched;
  return true;
}

v1::DetectionComparison DetectionComparer::Result() const {
  v1::DetectionComparison result;
  result.set_samples(samples_);
  result.set_float_detections(original_);
  result.set_found(found_);
  result.set_optimized_detections(result_);
  result.set_extra(extra_);
  if (found_ > 0) {
    const auto count = static_cast<double>(found_);
    result.set_mean_iou(iou_sum_ / count);
    result.set_mean_score_change(score_change_sum_ / count);
  }
  return result;
}

std::string Describe(const v1::DetectionComparison& d) {
  return absl::StrFormat(
      "found %.1f %% of %d, %.1f %% of %d are new, mean IoU %.3f, scores "
      "change by %.3f",
      100 * Share(d.found(), d.float_detections()), d.float_detections(),
      100 * Share(d.extra(), d.optimized_detections()),
      d.optimized_detections(), d.mean_iou(), d.mean_score_change());
}

}  // namespace optfarm::optimize
