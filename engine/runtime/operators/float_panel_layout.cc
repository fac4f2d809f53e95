// Weights as panels, and back.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/float_panels.h"

namespace optfarm::runtime {
namespace {

// UNITS: elements worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;

// Has the system back large weights with large pages, where it does that when
// asked: they are read from end to end, and each small page costs a look-up.
void AskForLargePages(void* memory, int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t end =
      (address + static_cast<uintptr_t>(bytes)) / kLargePage * kLargePage;
  // Only a hint: refused is as good as not asked.
  if (end > begin) {
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
}

// Some rows of some panels of depth x columns.
struct PanelPart {
  int64_t panel_begin;
  int64_t panel_end;
  int64_t row_begin;
  int64_t row_end;
};

// `corner` begins with the part's first row and column.
void PackPart(const FloatPanels& panels, const StridedMatrix& corner,
              const PanelPart& part, float scale, float* packed) {
  for (int64_t i = part.panel_begin; i < part.panel_end; ++i) {
    const int used = panels.used(i);
    const int width = panels.width(i);
    const float* from = corner.data + (i - part.panel_begin) *
                                          panels.tiles->width *
                                          corner.column_stride;
    float* out = packed + panels.offset(i) + part.row_begin * width;
    for (int64_t k = part.row_begin; k < part.row_end; ++k, out += width) {
      if (corner.column_stride == 1) {
        for (int c = 0; c < used; ++c) out[c] = from[c] * scale;
      } else {
        for (int c = 0; c < used; ++c) {
          out[c] = from[c * corner.column_stride] * scale;
        }
      }
      std::fill_n(out + used, width - used, 0.0f);
      from += corner.row_stride;
    }
  }
}

// UNITS: bytes of the matrix that are read before it is told.
constexpr int64_t kSlabBytes = 256 * 1024;

// A matrix in slabs of whole rows as it is stored. Where floats do not stand at
// their places, slabs are copied.
class Slabs {
 public:
  Slabs(const Tensor& matrix, int64_t row_elements, int64_t rows)
      : matrix_(static_cast<const char*>(matrix.raw())),
        row_bytes_(row_elements * static_cast<int64_t>(sizeof(float))) {
    if (reinterpret_cast<uintptr_t>(matrix_) % alignof(float) != 0) {
      copy_.emplace(rows * row_elements);
    }
  }

  // At most as many rows as were said; good until the next call.
  const float* Read(int64_t first, int64_t count) {
    const char* from = matrix_ + first * row_bytes_;
    if (!copy_) return reinterpret_cast<const float*>(from);
    std::memcpy(copy_->data(), from, static_cast<size_t>(count * row_bytes_));
    return copy_->data();
  }

 private:
  const char* matrix_;
  const int64_t row_bytes_;
  std::optional<Scratch<float>> copy_;
};

// Slab by slab: what was read can be given up while the rest is packed.
absl::StatusOr<Tensor> PackPanels(const FloatPanels& panels,
                                  const Tensor& matrix, bool transposed,
                                  ThreadPool* pool, WeightLayout::Done done) {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor packed, Tensor::Allocate(tensorflow::DT_FLOAT, {panels.size()}));
  float* to = packed.data<float>();
  AskForLargePages(to, packed.TotalBytes());
  constexpr int64_t kFloat = sizeof(float);
  const int64_t count = panels.count();
  if (transposed) {
    const int64_t bytes = kFloat * panels.depth * panels.tiles->width;
    const int64_t slab = 1 + kSlabBytes / bytes * pool->threads();
    const int64_t width = panels.tiles->width;
    Slabs slabs(matrix, panels.depth, std::min(slab * width, panels.columns));
    for (int64_t first = 0; first < count; first += slab) {
      const int64_t some = std::min(slab, count - first);
      const int64_t last = std::min((first + some) * width, panels.columns);
      const float* rows = slabs.Read(first * width, last - first * width);
      pool->ParallelFor(some, 1, [&](int64_t begin, int64_t end) {
        PackPart(panels, {rows + begin * width * panels.depth, 1, panels.depth},
                 {first + begin, first + end, 0, panels.depth}, 1.0f, to);
      });
      done(kFloat * last * panels.depth);
    }
    return packed;
  }
  const int64_t slab = 1 + kSlabBytes / (kFloat * panels.columns);
  Slabs slabs(matrix, panels.columns, std::min(slab, panels.depth));
  for (int64_t row = 0; row < panels.depth; row += slab) {
    const int64_t last = std::min(row + slab, panels.depth);
    const int64_t grain = 1 + kGrain / ((last - row) * panels.tiles->width);
    const float* rows = slabs.Read(row, last - row);
    pool->ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
      PackPart(panels, {rows + begin * panels.tiles->width, panels.columns, 1},
               {begin, end, row, last}, 1.0f, to);
    });
    done(kFloat * panels.columns * last);
  }
  return packed;
}

absl::StatusOr<Tensor> UnpackPanels(const FloatPanels& panels,
                                    const float* packed, bool transposed) {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor unpacked,
      Tensor::Allocate(tensorflow::DT_FLOAT, {panels.columns * panels.depth}));
  float* matrix = unpacked.data<float>();
  for (int64_t i = 0; i < panels.count(); ++i) {
    const int width = panels.width(i);
    const int64_t column = i * panels.tiles->width;
    const float* from = packed + panels.offset(i);
    for (int64_t k = 0; k < panels.depth; ++k, from += width) {
      for (int c = 0; c < panels.used(i); ++c) {
        matrix[transposed ? (column + c) * panels.depth + k
                          : k * panels.columns + column + c] = from[c];
      }
    }
  }
  return unpacked;
}

}  // namespace

int FloatPanels::used(int64_t i) const {
  return static_cast<int>(
      std::min<int64_t>(tiles->width, columns - i * tiles->width));
}

int64_t FloatPanels::size() const {
  const int64_t last = count() - 1;
  return last < 0 ? 0 : offset(last) + width(last) * depth;
}

void PackMatrix(const FloatPanels& panels, const StridedMatrix& matrix,
                float scale, float* packed) {
  PackPart(panels, matrix, {0, panels.count(), 0, panels.depth}, scale, packed);
}

WeightLayout LayoutOf(const FloatPanels& panels, bool transposed) {
  WeightLayout layout;
  layout.name =
      absl::StrCat("float panels of ", panels.tiles->width, ", ", panels.depth,
                   "x", panels.columns, transposed ? " transposed" : "");
  layout.packed_bytes = panels.size() * static_cast<int64_t>(sizeof(float));
  layout.pack = [panels, transposed](const Tensor& matrix, ThreadPool* pool,
                                     WeightLayout::Done done) {
    return PackPanels(panels, matrix, transposed, pool, done);
  };
  layout.unpack = [panels, transposed](const Tensor& packed) {
    return UnpackPanels(panels, packed.data<float>(), transposed);
  };
  return layout;
}

std::vector<float> PadColumns(const FloatPanels& panels,
                              const std::vector<float>& values) {
  std::vector<float> padded = values;
  if (!padded.empty()) {
    padded.resize(panels.count() * panels.tiles->width, 0.0f);
  }
  return padded;
}

}  // namespace optfarm::runtime
