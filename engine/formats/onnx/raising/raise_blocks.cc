// Between batch and space: the blocks that TensorFlow moves from the axes of a
// picture into its batch, and back. ONNX spells them out with Pad, Reshape,
// Transpose and Slice.

#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// The axes behind the batch that have blocks, and what is padded or cut off.
struct Blocks {
  std::vector<int64_t> sizes;
  std::vector<int64_t> before, after;
  // Sizes of all axes behind the batch, before padding or cutting.
  std::vector<int64_t> dims;
};

absl::StatusOr<Blocks> ReadBlocks(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  Blocks blocks;
  OPTFARM_ASSIGN_OR_RETURN(blocks.sizes, n.Integers(1, "the size of blocks"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> edges,
                           n.Integers(2, "what is padded or cut off"));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  const size_t count = blocks.sizes.size();
  if (edges.size() != 2 * count || static_cast<size_t>(rank) <= count) {
    return absl::InvalidArgumentError("its blocks do not fit its input");
  }
  constexpr int64_t kMost = int64_t{1} << 31;
  for (size_t i = 0; i < count; ++i) {
    if (blocks.sizes[i] < 1 || edges[2 * i] < 0 || edges[2 * i + 1] < 0 ||
        blocks.sizes[i] > kMost || edges[2 * i] > kMost ||
        edges[2 * i + 1] > kMost) {
      return absl::InvalidArgumentError("its blocks are out of range");
    }
    blocks.before.push_back(edges[2 * i]);
    blocks.after.push_back(edges[2 * i + 1]);
  }
  for (int axis = 1; axis < rank; ++axis) {
    blocks.dims.push_back(n.InShape(0).dim(axis));
    if (blocks.dims.back() < 0) {
      return absl::FailedPreconditionError(
          "sizes behind the batch are not known before the graph runs");
    }
  }
  return blocks;
}

// ONNX's pads: the starts of all axes, then the ends.
ValueId Padded(NodeRaiser& n, const Blocks& blocks, ValueId x) {
  const size_t rank = blocks.dims.size() + 1;
  std::vector<int64_t> pads(2 * rank, 0);
  bool pads_any = false;
  for (size_t i = 0; i < blocks.sizes.size(); ++i) {
    pads[1 + i] = blocks.before[i];
    pads[rank + 1 + i] = blocks.after[i];
    pads_any |= blocks.before[i] > 0 || blocks.after[i] > 0;
  }
  return pads_any ? n.Emit("Pad", {x, n.Ints(pads)}) : x;
}

absl::Status SpaceToBatch(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(n));
  // [batch, rows, block, columns, block, ..., rest]
  std::vector<int64_t> apart = {-1}, together = {-1};
  std::vector<int64_t> perm;
  for (size_t i = 0; i < blocks.dims.size(); ++i) {
    if (i >= blocks.sizes.size()) {
      apart.push_back(blocks.dims[i]);
      together.push_back(blocks.dims[i]);
      continue;
    }
    const int64_t size = blocks.dims[i] + blocks.before[i] + blocks.after[i];
    if (size % blocks.sizes[i] != 0) {
      return absl::InvalidArgumentError("its blocks do not fit its input");
    }
    apart.push_back(size / blocks.sizes[i]);
    perm.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(blocks.sizes[i]);
    together.push_back(size / blocks.sizes[i]);
  }
  perm.push_back(0);
  for (size_t i = 0; i < blocks.sizes.size(); ++i) {
    perm.push_back(static_cast<int64_t>(1 + 2 * i));
  }
  for (size_t i = 2 * blocks.sizes.size() + 1; i < apart.size(); ++i) {
    perm.push_back(static_cast<int64_t>(i));
  }
  const ValueId split = n.Reshape(Padded(n, blocks, n.In(0)), apart);
  n.Set(n.Reshape(n.Transpose(split, std::move(perm)), together));
  return absl::OkStatus();
}

absl::Status BatchToSpace(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(n));
  const size_t count = blocks.sizes.size();
  // [block, block, ..., batch, rows, columns, ..., rest]
  std::vector<int64_t> apart = blocks.sizes, together = {-1};
  apart.push_back(-1);
  apart.insert(apart.end(), blocks.dims.begin(), blocks.dims.end());
  std::vector<int64_t> perm = {static_cast<int64_t>(count)};
  std::vector<int64_t> starts, ends, axes;
  for (size_t i = 0; i < blocks.dims.size(); ++i) {
    perm.push_back(static_cast<int64_t>(count + 1 + i));
    if (i >= count) {
      together.push_back(blocks.dims[i]);
      continue;
    }
    perm.push_back(static_cast<int64_t>(i));
    int64_t size = 0;
    if (__builtin_mul_overflow(blocks.dims[i], blocks.sizes[i], &size) ||
        blocks.before[i] + blocks.after[i] > size) {
      return absl::InvalidArgumentError("it cuts off more than there is");
    }
    together.push_back(size);
    if (blocks.before[i] == 0 && blocks.after[i] == 0) continue;
    starts.push_back(blocks.before[i]);
    ends.push_back(size - blocks.after[i]);
    axes.push_back(static_cast<int64_t>(1 + i));
  }
  const ValueId moved = n.Transpose(n.Reshape(n.In(0), apart), std::move(perm));
  ValueId whole = n.Reshape(moved, together);
  if (!axes.empty()) {
    whole =
        n.Emit("Slice", {whole, n.Ints(starts), n.Ints(ends), n.Ints(axes)});
  }
  n.Set(whole);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"SpaceToBatchND", SpaceToBatch},
    {"BatchToSpaceND", BatchToSpace},
};

}  // namespace

absl::Span<const RaisingRow> BlockRaisings() { return kRows; }

}  // namespace optfarm::formats
