// Windows over channels-first arrays with any number of spatial dimensions:
// LpPool, which takes the p-norm of each window, and Col2Im, which adds columns
// of patches up to images.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 24;

struct WindowAttributes {
  std::vector<int64_t> size;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  // Before each dimension, then after each.
  std::vector<int64_t> pads;
};

// Lists that are empty hold `filling` for each of `count` dimensions.
absl::Status Complete(std::vector<int64_t>* values, size_t count,
                      int64_t filling, int64_t least, absl::string_view name) {
  if (values->empty()) values->assign(count, filling);
  bool fits = values->size() == count;
  for (int64_t value : *values) {
    fits = fits && value >= least && value <= kMaxWindow;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' must hold ", count, " numbers of at least ", least));
}

absl::Status CompleteWindow(size_t spatial, WindowAttributes* window) {
  OPTFARM_RETURN_IF_ERROR(
      Complete(&window->size, spatial, 1, 1, "kernel_shape"));
  OPTFARM_RETURN_IF_ERROR(Complete(&window->strides, spatial, 1, 1, "strides"));
  OPTFARM_RETURN_IF_ERROR(
      Complete(&window->dilations, spatial, 1, 1, "dilations"));
  int64_t cells = 1;
  for (int64_t size : window->size) {
    if (__builtin_mul_overflow(cells, size, &cells) || cells > kMaxWindow) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of more than ", kMaxWindow, " elements"));
    }
  }
  return Complete(&window->pads, 2 * spatial, 0, 0, "pads");
}

absl::StatusOr<WindowAttributes> ReadWindow(const tensorflow::NodeDef& node) {
  WindowAttributes window;
  OPTFARM_ASSIGN_OR_RETURN(window.size,
                           graph::GetIntsOr(node, "kernel_shape", {}));
  OPTFARM_ASSIGN_OR_RETURN(window.strides,
                           graph::GetIntsOr(node, "strides", {}));
  OPTFARM_ASSIGN_OR_RETURN(window.dilations,
                           graph::GetIntsOr(node, "dilations", {}));
  OPTFARM_ASSIGN_OR_RETURN(window.pads, graph::GetIntsOr(node, "pads", {}));
  return window;
}

// How many windows fit into one dimension.
absl::StatusOr<int64_t> WindowCount(const WindowAttributes& window, size_t d,
                                    int64_t size, bool ceil_mode) {
  const size_t spatial = window.size.size();
  const int64_t before = window.pads[d];
  const int64_t reach = window.dilations[d] * (window.size[d] - 1) + 1;
  int64_t room = size + before + window.pads[spatial + d] - reach;
  // Rounded up, there is one window that reaches beyond the pads.
  if (ceil_mode && room > -window.strides[d]) room = std::max<int64_t>(room, 0);
  if (size > (int64_t{1} << 40) || room < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window that reaches over ", reach,
                     " elements does not fit into ", size, " elements"));
  }
  int64_t count = room / window.strides[d] + 1;
  if (ceil_mode && room % window.strides[d] != 0 &&
      count * window.strides[d] < size + before) {
    ++count;
  }
  return count;
}

// Steps through all positions of `sizes`, the last dimension fastest.
class Counter {
 public:
  explicit Counter(const std::vector<int64_t>& sizes)
      : sizes_(sizes), at_(sizes.size(), 0) {}
  const std::vector<int64_t>& at() const { return at_; }
  // False behind the last one.
  bool Next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      if (++at_[d] < sizes_[d]) return true;
      at_[d] = 0;
    }
    return false;
  }

 private:
  const std::vector<int64_t>& sizes_;
  std::vector<int64_t> at_;
};

// The element of an image under one cell of one window; -1 outside.
int64_t ElementUnder(const WindowAttributes& window,
                     const std::vector<int64_t>& image,
                     const std::vector<int64_t>& position,
                     const std::vector<int64_t>& cell) {
  int64_t element = 0;
  for (size_t d = 0; d < image.size(); ++d) {
    const int64_t at = position[d] * window.strides[d] - window.pads[d] +
                       cell[d] * window.dilations[d];
    if (at < 0 || at >= image[d]) return -1;
    element = element * image[d] + at;
  }
  return element;
}

template <typename T>
void NormsOfWindows(const WindowAttributes& window, double p,
                    const std::vector<int64_t>& image, int64_t image_size,
                    const std::vector<int64_t>& counts, int64_t images,
                    const T* x, T* y) {
  for (int64_t n = 0; n < images; ++n) {
    Counter position(counts);
    do {
      LeaveIfRunEnded();
      double sum = 0.0;
      Counter cell(window.size);
      do {
        const int64_t at =
            ElementUnder(window, image, position.at(), cell.at());
        if (at < 0) continue;
        const double v = std::abs(static_cast<double>(x[n * image_size + at]));
        sum += p == 1.0 ? v : p == 2.0 ? v * v : std::pow(v, p);
      } while (cell.Next());
      *y++ = static_cast<T>(p == 1.0   ? sum
                            : p == 2.0 ? std::sqrt(sum)
                                       : std::pow(sum, 1.0 / p));
    } while (position.Next());
  }
}

absl::Status ComputeLpPool(WindowAttributes window, int64_t p, bool ceil_mode,
                           KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
  const Tensor& x = context->input(0);
  if (x.rank() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("'x' must have batch, channels and more, but has shape ",
                     x.shape().ToString()));
  }
  const size_t spatial = static_cast<size_t>(x.rank()) - 2;
  OPTFARM_RETURN_IF_ERROR(CompleteWindow(spatial, &window));
  std::vector<int64_t> dims = {x.dim(0), x.dim(1)};
  std::vector<int64_t> image;
  for (size_t d = 0; d < spatial; ++d) {
    image.push_back(x.dim(static_cast<int>(d) + 2));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                             WindowCount(window, d, image[d], ceil_mode));
    dims.push_back(count);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const std::vector<int64_t> counts(dims.begin() + 2, dims.end());
  return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    NormsOfWindows(window, static_cast<double>(p), image,
                   DimProduct(x.shape(), 2, x.rank()), counts,
                   x.dim(0) * x.dim(1), x.data<T>(), out->data<T>());
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLpPool(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttributes window, ReadWindow(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t p, graph::GetIntOr(node, "p", 2));
  OPTFARM_ASSIGN_OR_RETURN(const bool ceil_mode,
                           graph::GetBoolOr(node, "ceil_mode", false));
  if (p < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("p = ", p, " must be at least 1"));
  }
  return MakeKernel([=](KernelContext* context) {
    return ComputeLpPool(window, p, ceil_mode, context);
  });
}

// Sizes of what Col2Im makes.
struct Columns {
  std::vector<int64_t> image;
  std::vector<int64_t> counts;
  int64_t channels = 0;
};

absl::StatusOr<Columns> PlanColumns(const Tensor& x, const Tensor& image_shape,
                                    const Tensor& block_shape,
                                    WindowAttributes* window) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 3));
  Columns columns;
  OPTFARM_ASSIGN_OR_RETURN(columns.image,
                           ReadIntegers(image_shape, "image_shape"));
  OPTFARM_ASSIGN_OR_RETURN(window->size,
                           ReadIntegers(block_shape, "block_shape"));
  if (columns.image.empty()) {
    return absl::InvalidArgumentError("'image_shape' is empty");
  }
  OPTFARM_RETURN_IF_ERROR(
      Complete(&columns.image, columns.image.size(), 0, 0, "image_shape"));
  OPTFARM_RETURN_IF_ERROR(CompleteWindow(columns.image.size(), window));
  int64_t block = 1;
  int64_t positions = 1;
  for (size_t d = 0; d < columns.image.size(); ++d) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                             WindowCount(*window, d, columns.image[d], false));
    columns.counts.push_back(count);
    if (__builtin_mul_overflow(block, window->size[d], &block) ||
        __builtin_mul_overflow(positions, count, &positions)) {
      return absl::InvalidArgumentError("the blocks are too large");
    }
  }
  if (x.dim(1) % block != 0 || x.dim(2) != positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'x' of shape ", x.shape().ToString(), " does not hold blocks of ",
        block, " elements at ", positions, " positions"));
  }
  columns.channels = x.dim(1) / block;
  return columns;
}

template <typename T>
void AddColumns(const WindowAttributes& window, const Columns& columns,
                int64_t images, int64_t image_size, const T* x, T* y) {
  for (int64_t n = 0; n < images; ++n) {
    T* to = y + n * image_size;
    Counter cell(window.size);
    do {
      LeaveIfRunEnded();
      Counter position(columns.counts);
      do {
        const int64_t at =
            ElementUnder(window, columns.image, position.at(), cell.at());
        if (at >= 0) to[at] += *x;
        ++x;
      } while (position.Next());
    } while (cell.Next());
  }
}

absl::Status ComputeColumns(WindowAttributes window, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
  const Tensor& x = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(
      const Columns columns,
      PlanColumns(x, context->input(1), context->input(2), &window));
  std::vector<int64_t> dims = {x.dim(0), columns.channels};
  dims.insert(dims.end(), columns.image.begin(), columns.image.end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(x.dtype(), shape));
  if (x.num_elements() > 0) {
    OPTFARM_RETURN_IF_ERROR(
        VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          AddColumns(window, columns, x.dim(0) * columns.channels,
                     DimProduct(shape, 2, shape.rank()), x.data<T>(),
                     out.data<T>());
          return absl::OkStatus();
        }));
  }
  context->SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCol2Im(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttributes window, ReadWindow(node));
  return MakeKernel([window](KernelContext* context) {
    return ComputeColumns(window, context);
  });
}

}  // namespace

void AddChannelsFirstWindowKernels(KernelCatalog* catalog) {
  catalog->Add("Col2Im", MakeCol2Im);
  catalog->Add("LpPool", MakeLpPool);
}

}  // namespace optfarm::runtime
