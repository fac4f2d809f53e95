#include "engine/formats/tflite/sparse_tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// A list of any of the three widths.
struct IndexList {
  explicit IndexList(SparseIndexVector kind, const void* table) {
    if (table == nullptr) return;
    if (kind == SparseIndexVector::Int32Vector) {
      Set(static_cast<const Int32Vector*>(table)->values());
    } else if (kind == SparseIndexVector::Uint16Vector) {
      Set(static_cast<const Uint16Vector*>(table)->values());
    } else if (kind == SparseIndexVector::Uint8Vector) {
      Set(static_cast<const Uint8Vector*>(table)->values());
    }
  }
  template <typename Values>
  void Set(const Values* list) {
    if (list != nullptr) values.assign(list->begin(), list->end());
  }
  std::vector<int64_t> values;
};

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("its sparsity is damaged: ", what));
}

// One level of the tree.
struct Level {
  const DimensionMetadata* metadata = nullptr;
  // How many indices it has, and how far apart their elements are.
  int64_t size = 0, stride = 0;
};

template <typename T>
int SizeOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : static_cast<int>(vector->size());
}

absl::StatusOr<std::vector<Level>> LevelsOf(const SparsityParameters& sparsity,
                                            const std::vector<int64_t>& shape) {
  const int rank = static_cast<int>(shape.size());
  const int blocks = SizeOf(sparsity.block_map());
  const int count = rank + blocks;
  if (SizeOf(sparsity.traversal_order()) != count ||
      SizeOf(sparsity.dim_metadata()) != count) {
    return Damaged("its levels are not as many as its dimensions");
  }
  // By number of the dimension, blocks behind the tensor's.
  std::vector<Level> by_dimension(count);
  std::vector<int> order;
  for (int i = 0; i < count; ++i) {
    const int dimension = sparsity.traversal_order()->Get(i);
    if (dimension < 0 || dimension >= count ||
        (dimension < rank) != (i < rank) ||
        by_dimension[dimension].metadata != nullptr) {
      return Damaged("the order of its levels is no permutation");
    }
    by_dimension[dimension].metadata = sparsity.dim_metadata()->Get(i);
    order.push_back(dimension);
  }
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    by_dimension[i].size = shape[i];
    by_dimension[i].stride = stride;
    stride *= shape[i];
  }
  for (int i = 0; i < blocks; ++i) {
    Level& block = by_dimension[rank + i];
    const int of = sparsity.block_map()->Get(i);
    block.size = block.metadata->dense_size();
    if (of < 0 || of >= rank ||
        block.metadata->format() != DimensionType::DENSE || block.size <= 0 ||
        by_dimension[of].size % block.size != 0) {
      return Damaged("a block does not divide its dimension");
    }
    block.stride = by_dimension[of].stride;
    by_dimension[of].size /= block.size;
    by_dimension[of].stride *= block.size;
  }
  std::vector<Level> levels;
  for (const int dimension : order) levels.push_back(by_dimension[dimension]);
  return levels;
}

// The children of `nodes`, each by the position of its first element.
absl::StatusOr<std::vector<int64_t>> Descend(const Level& level,
                                             const std::vector<int64_t>& nodes,
                                             int64_t most) {
  std::vector<int64_t> children;
  const auto count = static_cast<int64_t>(nodes.size());
  if (level.metadata->format() == DimensionType::DENSE) {
    if (level.size != 0 && count > most / level.size) {
      return Damaged("it has more elements than the shape");
    }
    children.reserve(count * level.size);
    for (const int64_t node : nodes) {
      for (int64_t i = 0; i < level.size; ++i) {
        children.push_back(node + i * level.stride);
      }
    }
    return children;
  }
  const IndexList segments(level.metadata->array_segments_type(),
                           level.metadata->array_segments());
  const IndexList indices(level.metadata->array_indices_type(),
                          level.metadata->array_indices());
  const auto end = static_cast<int64_t>(indices.values.size());
  if (static_cast<int64_t>(segments.values.size()) != count + 1 || end > most) {
    return Damaged("its segments do not fit the level above");
  }
  for (int64_t node = 0; node < count; ++node) {
    const int64_t from = segments.values[node], to = segments.values[node + 1];
    if (from < 0 || to < from || to > end) {
      return Damaged("a segment leads out of its indices");
    }
    if (static_cast<int64_t>(children.size()) + to - from > most) {
      return Damaged("it has more elements than the shape");
    }
    for (int64_t i = from; i < to; ++i) {
      const int64_t index = indices.values[i];
      if (index < 0 || index >= level.size) {
        return Damaged(
            absl::StrCat("index ", index, " is beyond ", level.size));
      }
      children.push_back(nodes[node] + index * level.stride);
    }
  }
  return children;
}

}  // namespace

absl::StatusOr<std::string> ExpandSparse(const SparsityParameters& sparsity,
                                         const std::vector<int64_t>& shape,
                                         int64_t element_bytes,
                                         absl::string_view stored) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Level> levels,
                           LevelsOf(sparsity, shape));
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  std::vector<int64_t> nodes = {0};
  for (const Level& level : levels) {
    OPTFARM_ASSIGN_OR_RETURN(nodes, Descend(level, nodes, elements));
  }
  if (nodes.size() * element_bytes != stored.size()) {
    return Damaged(absl::StrCat("it stores ", stored.size(), " bytes for ",
                                nodes.size(), " elements"));
  }
  std::string dense(static_cast<size_t>(elements * element_bytes), '\0');
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::memcpy(dense.data() + nodes[i] * element_bytes,
                stored.data() + i * element_bytes, element_bytes);
  }
  return dense;
}

}  // namespace optfarm::tflite
