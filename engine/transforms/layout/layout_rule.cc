#include "engine/transforms/layout/layout_rule.h"

#include "engine/graph/ops/op_table.h"

namespace optfarm::transforms {

bool LayoutSubject::IsConstInput(int i) const {
  return graph::IsConst(graph.node(node().inputs()[i].node).op());
}

std::optional<std::vector<int64_t>> LayoutSubject::Numbers(int i) const {
  const graph::PartialValue* value = shapes.ValueOf(node().inputs()[i]);
  if (value == nullptr || !value->is_known()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const std::optional<int64_t>& element : value->elements) {
    numbers.push_back(*element);
  }
  return numbers;
}

std::optional<std::vector<int>> LayoutSubject::Axes(int i, int rank) const {
  const auto numbers = Numbers(i);
  if (!numbers.has_value()) return std::nullopt;
  std::vector<int> axes;
  for (int64_t number : *numbers) {
    const int64_t axis = number < 0 ? number + rank : number;
    if (axis < 0 || axis >= rank) return std::nullopt;
    axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

std::optional<int> LayoutSubject::Axis(int i, int rank) const {
  const auto axes = Axes(i, rank);
  if (!axes.has_value() || axes->size() != 1) return std::nullopt;
  return axes->front();
}

}  // namespace optfarm::transforms
