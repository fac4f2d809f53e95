#include "engine/formats/onnx/raising/axis_order.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace optfarm::formats {
namespace {

AxisOrder Unchanged(int rank) {
  AxisOrder order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

AxisOrder ChannelsSecond(int rank) {
  if (rank < 3) return {};
  AxisOrder order = {0, rank - 1};
  for (int axis = 1; axis < rank - 1; ++axis) order.push_back(axis);
  return order;
}

AxisOrder Simplified(AxisOrder order) {
  return order == Unchanged(static_cast<int>(order.size())) ? AxisOrder()
                                                            : std::move(order);
}

AxisOrder Inverted(const AxisOrder& order) {
  AxisOrder inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int>(i);
  }
  return inverse;
}

int AxisInFile(const AxisOrder& order, int axis) {
  const auto found = std::find(order.begin(), order.end(), axis);
  return found == order.end() ? axis : static_cast<int>(found - order.begin());
}

std::vector<int64_t> TransposeBetween(const AxisOrder& from,
                                      const AxisOrder& to, int rank) {
  const AxisOrder target = to.empty() ? Unchanged(rank) : to;
  std::vector<int64_t> perm;
  perm.reserve(target.size());
  for (int axis : target) perm.push_back(AxisInFile(from, axis));
  return perm;
}

std::vector<int64_t> Permuted(absl::Span<const int64_t> values,
                              const AxisOrder& order) {
  std::vector<int64_t> permuted(values.begin(), values.end());
  for (size_t i = 0; i < order.size(); ++i) {
    permuted[i] = values[static_cast<size_t>(order[i])];
  }
  return permuted;
}

std::string PermutedBytes(absl::string_view bytes,
                          absl::Span<const int64_t> dims,
                          const AxisOrder& order, size_t element_bytes) {
  if (order.empty() || bytes.empty()) return std::string(bytes);
  // UNITS of steps: bytes in the graph's tensor for one step along each axis of
  // the file's.
  const size_t rank = dims.size();
  std::vector<size_t> graph_steps(rank, element_bytes);
  for (size_t i = rank - 1; i > 0; --i) {
    graph_steps[i - 1] = graph_steps[i] * static_cast<size_t>(dims[i]);
  }
  std::vector<size_t> steps, sizes;
  for (int axis : order) {
    steps.push_back(graph_steps[static_cast<size_t>(axis)]);
    sizes.push_back(static_cast<size_t>(dims[static_cast<size_t>(axis)]));
  }
  std::string out(bytes.size(), '\0');
  std::vector<size_t> index(rank, 0);
  size_t from = 0;
  for (size_t to = 0; to < bytes.size(); to += element_bytes) {
    std::memcpy(&out[to], bytes.data() + from, element_bytes);
    for (size_t axis = rank; axis-- > 0;) {
      from += steps[axis];
      if (++index[axis] < sizes[axis]) break;
      from -= steps[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return out;
}

AxisOrder OrderWithout(const AxisOrder& order, absl::Span<const int> gone) {
  AxisOrder left;
  for (int axis : order) {
    if (std::find(gone.begin(), gone.end(), axis) != gone.end()) continue;
    const auto before = std::count_if(
        gone.begin(), gone.end(), [axis](int other) { return other < axis; });
    left.push_back(axis - static_cast<int>(before));
  }
  return left;
}

AxisOrder OrderWith(const AxisOrder& order, int axis) {
  if (order.empty()) return {};
  AxisOrder with;
  for (int old : order) with.push_back(old >= axis ? old + 1 : old);
  with.insert(with.begin() + axis, axis);
  return with;
}

bool HaveSameBytes(absl::Span<const int64_t> dims, const AxisOrder& from,
                   const AxisOrder& to) {
  const auto moved = [&](const AxisOrder& order) {
    std::vector<int> axes;
    const AxisOrder all =
        order.empty() ? Unchanged(static_cast<int>(dims.size())) : order;
    for (int axis : all) {
      if (dims[static_cast<size_t>(axis)] != 1) axes.push_back(axis);
    }
    return axes;
  };
  return moved(from) == moved(to);
}

}  // namespace optfarm::formats
