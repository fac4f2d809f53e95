#include "engine/runtime/fusion/float_convolution.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/fusion/padded_images.h"
#include "engine/runtime/fusion/row_bands.h"
#include "engine/runtime/operators/winograd_convolution.h"

namespace optfarm::runtime {
namespace {

// Images with so few channels are read a row of the window at a time: there
// pointers for each cell would cost more than they save.
constexpr int64_t kFewChannels = 16;
// As many where few windows hang over the border, which costs a copy.
constexpr int64_t kSomeChannels = 64;

// Where each pixel's patch stands in an image.
class Patches {
 public:
  Patches(const float* image, int64_t channels, const Window& window,
          bool by_rows, const float* zeros)
      : image_(image),
        channels_(channels),
        y_(window.y),
        x_(window.x),
        by_rows_(by_rows),
        zeros_(zeros),
        is_pixelwise_(IsPixelwise(window.y) && IsPixelwise(window.x)) {}

  // Pixels are counted over batch, height and width.
  void Point(int64_t first, int count, float* scratch, const float** to) const {
    // Divisions would take as long as a tile of few channels.
    if (is_pixelwise_) {
      const float* at = image_ + first * channels_;
      for (int i = 0; i < count; ++i, at += channels_) to[i] = at;
      return;
    }
    int64_t pixel = first;
    for (int done = 0; done < count;) {
      const int64_t ox = pixel % x_.out;
      const int64_t row = pixel / x_.out;
      const int some =
          static_cast<int>(std::min<int64_t>(count - done, x_.out - ox));
      const Piece piece = {row / y_.out * y_.in,
                           row % y_.out * y_.stride - y_.pad_before, ox, some};
      if (by_rows_) {
        PointByRows(piece, count, scratch, to + done);
        scratch += some * y_.size * x_.size * channels_;
      } else {
        PointByCells(piece, count, to + done);
      }
      done += some;
      pixel += some;
    }
  }

 private:
  static bool IsPixelwise(const WindowAxis& axis) {
    return axis.size == 1 && axis.stride == 1 && axis.pad_before == 0 &&
           axis.in == axis.out;
  }

  // Pixels of one row, side by side.
  struct Piece {
    // Rows of images before this one.
    int64_t image_row;
    int64_t iy;
    int64_t ox;
    int count;
  };

  const float* RowOf(const Piece& piece, int64_t ky) const {
    const int64_t iy = piece.iy + ky * y_.dilation;
    if (iy < 0 || iy >= y_.in) return nullptr;
    return image_ + (piece.image_row + iy) * x_.in * channels_;
  }

  // The pixels [begin, end) of a piece whose cell kx is inside the image.
  void FindInside(const Piece& piece, int64_t x0, int64_t* begin,
                  int64_t* end) const {
    if (x0 >= 0 && x0 + (piece.count - 1) * x_.stride < x_.in) {
      *begin = 0;
      *end = piece.count;
      return;
    }
    *begin = x0 >= 0 ? 0 : (-x0 + x_.stride - 1) / x_.stride;
    *begin = std::min<int64_t>(*begin, piece.count);
    const int64_t room = x_.in - x0;
    *end = room <= 0 ? 0 : (room + x_.stride - 1) / x_.stride;
    *end = std::clamp<int64_t>(*end, *begin, piece.count);
  }

  void PointByCells(const Piece& piece, int stride, const float** to) const {
    const int64_t pixel = x_.stride * channels_;
    for (int64_t ky = 0; ky < y_.size; ++ky) {
      const float* row = RowOf(piece, ky);
      for (int64_t kx = 0; kx < x_.size; ++kx, to += stride) {
        if (row == nullptr) {
          std::fill_n(to, piece.count, zeros_);
          continue;
        }
        const int64_t x0 =
            piece.ox * x_.stride - x_.pad_before + kx * x_.dilation;
        int64_t begin, end;
        FindInside(piece, x0, &begin, &end);
        std::fill(to, to + begin, zeros_);
        for (int64_t i = begin; i < end; ++i) {
          to[i] = row + x0 * channels_ + i * pixel;
        }
        std::fill(to + end, to + piece.count, zeros_);
      }
    }
  }

  // Patches that hang over the border are put together in `scratch`.
  void PointByRows(const Piece& piece, int stride, float* scratch,
                   const float** to) const {
    const int64_t run = x_.size * channels_;
    const int64_t pixel = x_.stride * channels_;
    const int64_t x0 = piece.ox * x_.stride - x_.pad_before;
    // The pixels [begin, end) have all of their window inside the image.
    int64_t begin = 0, end = piece.count;
    const int64_t room = x_.in - x_.size - x0;
    if (x0 < 0 || room < (end - 1) * x_.stride) {
      begin = std::clamp<int64_t>((-x0 + x_.stride - 1) / x_.stride, 0, end);
      end =
          std::clamp<int64_t>(room < 0 ? 0 : room / x_.stride + 1, begin, end);
    }
    for (int64_t ky = 0; ky < y_.size; ++ky, to += stride) {
      const float* row = RowOf(piece, ky);
      if (row == nullptr) {
        std::fill_n(to, piece.count, zeros_);
        continue;
      }
      const auto copy = [&](int64_t i) {
        CopyPatchRow(row, x0 + i * x_.stride, scratch);
        to[i] = scratch;
        scratch += run;
      };
      for (int64_t i = 0; i < begin; ++i) copy(i);
      const float* at = row + x0 * channels_ + begin * pixel;
      for (int64_t i = begin; i < end; ++i, at += pixel) to[i] = at;
      for (int64_t i = end; i < piece.count; ++i) copy(i);
    }
  }

  // A row of the window at x0, with zeros for what is outside.
  void CopyPatchRow(const float* row, int64_t x0, float* to) const {
    const int64_t begin = std::clamp<int64_t>(-x0, 0, x_.size);
    const int64_t end = std::clamp<int64_t>(x_.in - x0, begin, x_.size);
    to = std::fill_n(to, begin * channels_, 0.0f);
    to = std::copy(row + (x0 + begin) * channels_, row + (x0 + end) * channels_,
                   to);
    std::fill_n(to, (x_.size - end) * channels_, 0.0f);
  }

  const float* image_;
  int64_t channels_;
  WindowAxis y_;
  WindowAxis x_;
  bool by_rows_;
  const float* zeros_;
  // Windows are single pixels, one for each of the image.
  bool is_pixelwise_;
};

// The image's rows that a 1x1 convolution reads, band by band.
struct PixelwiseReader final : RowConsumer::Reader {
  RowImage image;
  // Of all rows, but for their number and where they come from and go to.
  FloatProduct product;
  // Weights that are not kept.
  Tensor streamed;
  float* out = nullptr;

  void Read(const RowBand& band, FirstWeights::Place next) const override {
    const auto* const pixels = static_cast<const float*>(band.rows);
    const int64_t first =
        (band.image * image.height + band.begin) * image.width;
    FloatProduct some = product;
    some.rows = (band.end - band.begin) * image.width;
    some.out = out + first * product.row_stride;
    MultiplyPanelsAlone(
        some,
        [&](int64_t begin, int count, float*, const float** to) {
          for (int i = 0; i < count; ++i) {
            to[i] = pixels + (begin + i) * image.channels;
          }
        },
        next);
  }
};

class FloatConvolutionKernel final : public JoinableKernel,
                                     public WeightReader,
                                     public RowProducer,
                                     public RowConsumer,
                                     public WinogradLayer {
 public:
  explicit FloatConvolutionKernel(FloatConvolution c)
      : c_(std::move(c)), zeros_(c_.filter_shape.dim(1) * channels(), 0.0f) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& image = context->input(0);
    if (image.dtype() != tensorflow::DT_FLOAT || image.rank() != 4 ||
        image.dim(3) != channels()) {
      return RunSteps(c_.chain, context);
    }
    const absl::StatusOr<Window> window = WindowOf(image);
    if (!window.ok()) return RunSteps(c_.chain, context);
    const int64_t dims[] = {image.dim(0), window->y.out, window->x.out,
                            c_.filter_shape.dim(3)};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    if (c_.has_residual && (context->input(1).shape() != shape ||
                            context->input(1).dtype() != image.dtype())) {
      return RunSteps(c_.chain, context);
    }
    Tensor streamed;
    const int64_t rows = image.dim(0) * window->y.out * window->x.out;
    const Tensor* packed = c_.packed.Get(context->pool(), rows, &streamed);
    if (packed == nullptr) return RunSteps(c_.chain, context);
    FloatPlace place;
    if (c_.has_residual) {
      OPTFARM_ASSIGN_OR_RETURN(Tensor * out, context->ForwardOrAllocateOutput(
                                                 0, 1, image.dtype(), shape));
      place = {out->data<float>(), c_.panels.columns};
    } else {
      OPTFARM_ASSIGN_OR_RETURN(place, AllocatePart(shape, context));
    }
    Multiply(image, *window, packed->data<float>(), context, place);
    return absl::OkStatus();
  }
  // A sum may be written over what is added.
  bool MayBePart() const override { return !c_.has_residual; }
  int64_t ChannelsFor(int64_t) const override { return c_.panels.columns; }
  FirstWeights First() const override {
    return FirstPanels(c_.panels, c_.packed);
  }
  bool MayUseWinograd() const override {
    return c_.filter_shape.dim(0) == 3 && c_.filter_shape.dim(1) == 3 &&
           c_.window.stride_y == 1 && c_.window.stride_x == 1;
  }

  std::optional<RowElements> Elements() const override { return RowElements(); }
  std::optional<RowImage> ImageOf(const Tensor& input) const override {
    if (input.dtype() != tensorflow::DT_FLOAT || input.rank() != 4 ||
        input.dim(3) != channels() || is_part() || c_.has_residual) {
      return std::nullopt;
    }
    const absl::StatusOr<Window> window = WindowOf(input);
    if (!window.ok() || IsTransformed(ImagesOf(input, *window))) {
      return std::nullopt;
    }
    return RowImage{input.dim(0), window->y.out, window->x.out,
                    c_.panels.columns};
  }
  absl::StatusOr<bool> WithRows(
      const Tensor& input, ThreadPool* pool,
      absl::FunctionRef<absl::StatusOr<bool>(const Rows&)> use) const override;

  // 1x1 convolutions whose weights are so few that the image is likely to be
  // large.
  bool Reads(const RowElements& elements) const override {
    constexpr int64_t kMostBytes = 384 * 1024;
    return elements.dtype == tensorflow::DT_FLOAT && IsPixelwise() &&
           4 * c_.panels.size() <= kMostBytes;
  }
  std::optional<BandPlan> PlanBands(const RowImage& image,
                                    ThreadPool* pool) const override;
  absl::StatusOr<bool> WithReader(
      const RowImage& image, KernelContext* context,
      absl::FunctionRef<void(const Reader&)> use) const override;

 private:
  class ConvolutionRows;

  int64_t channels() const { return c_.filter_shape.dim(2); }
  bool IsPixelwise() const {
    return c_.filter_shape.dim(0) == 1 && c_.filter_shape.dim(1) == 1 &&
           c_.window.stride_y == 1 && c_.window.stride_x == 1 &&
           c_.window.padding != Padding::kExplicit && !c_.has_residual;
  }
  absl::StatusOr<Window> WindowOf(const Tensor& image) const {
    return PlaceWindow(c_.window, image.dim(1), image.dim(2),
                       c_.filter_shape.dim(0), c_.filter_shape.dim(1));
  }

  // What does not depend on the image.
  FloatProduct ProductBy(const float* packed) const {
    FloatProduct product;
    product.panels = c_.panels;
    product.packed = packed;
    product.next = &next();
    if (!c_.scale.empty()) product.scale = c_.scale.data();
    if (!c_.bias.empty()) product.bias = c_.bias.data();
    product.rectifier = c_.rectifier;
    return product;
  }

  WinogradImages ImagesOf(const Tensor& image, const Window& window) const {
    return {image.data<float>(), image.dim(0), channels(), window,
            zeros_.data()};
  }
  bool IsTransformed(const WinogradImages& images) const {
    return transforms() != nullptr &&
           FavorsWinograd(*transforms(), images, c_.panels.columns);
  }

  // Rows of the product are patches of an image.
  void ReadPatches(const Window& window, FloatProduct* product) const {
    const bool by_rows = ReadsByRows(window.x);
    product->taps = by_rows ? window.y.size : window.y.size * window.x.size;
    product->run = by_rows ? window.x.size * channels() : channels();
    product->row_bytes = 4 * channels() *
                         std::min(window.y.stride, window.y.size) *
                         std::min(window.x.stride, window.x.size);
    product->scratch = by_rows ? c_.panels.depth : 0;
  }
  // Images as `PatchesOf` reads them.
  PaddedImages PadImages(const Tensor& image, const Window& window) const {
    return {image.data<float>(), image.dim(0), channels(), window,
            ReadsByRows(window.x)};
  }
  // `window` is where windows stand in the image itself.
  Patches PatchesOf(const PaddedImages& images, const Window& window) const {
    return {images.data(), channels(), images.window(), ReadsByRows(window.x),
            zeros_.data()};
  }

  bool ReadsByRows(const WindowAxis& x) const {
    const int64_t most = x.in >= 8 * x.size ? kSomeChannels : kFewChannels;
    return channels() <= most && x.size > 1 && x.dilation == 1;
  }

  void Multiply(const Tensor& image, const Window& window, const float* packed,
                KernelContext* context, const FloatPlace& place) const {
    FloatProduct product = ProductBy(packed);
    if (c_.has_residual) product.residual = context->input(1).data<float>();
    product.out = place.data;
    product.row_stride = place.pixel_stride;
    product.rows = image.dim(0) * window.y.out * window.x.out;
    const WinogradImages images = ImagesOf(image, window);
    if (IsTransformed(images)) {
      return ConvolveByWinograd(*transforms(), product, images,
                                context->pool());
    }
    ReadPatches(window, &product);
    const PaddedImages padded = PadImages(image, window);
    const Patches patches = PatchesOf(padded, window);
    MultiplyPanels(
        product,
        [&](int64_t first, int count, float* scratch, const float** to) {
          patches.Point(first, count, scratch, to);
        },
        context->pool());
  }

  const FloatConvolution c_;
  // What lies outside of the image: a row of the window.
  const std::vector<float> zeros_;
};

// Rows of the result.
class FloatConvolutionKernel::ConvolutionRows final : public Rows {
 public:
  ConvolutionRows(const FloatConvolutionKernel& kernel, const Tensor& input,
                  const Window& window)
      : images_(kernel.PadImages(input, window)),
        patches_(kernel.PatchesOf(images_, window)),
        width_(window.x.out) {}

  void Make(int64_t begin, int64_t end, FirstWeights::Place next,
            void* out) const override {
    FloatProduct some = product;
    some.rows = (end - begin) * width_;
    some.out = static_cast<float*>(out);
    MultiplyPanelsAlone(
        some,
        [&](int64_t first, int count, float* scratch, const float** to) {
          patches_.Point(begin * width_ + first, count, scratch, to);
        },
        next);
  }

  // Of all rows, but for where it goes.
  FloatProduct product;
  // Weights that are not kept.
  Tensor streamed;

 private:
  const PaddedImages images_;
  const Patches patches_;
  const int64_t width_;
};

absl::StatusOr<bool> FloatConvolutionKernel::WithRows(
    const Tensor& input, ThreadPool* pool,
    absl::FunctionRef<absl::StatusOr<bool>(const Rows&)> use) const {
  const absl::StatusOr<Window> window = WindowOf(input);
  ConvolutionRows rows(*this, input, *window);
  const int64_t pixels = input.dim(0) * window->y.out * window->x.out;
  const Tensor* packed = c_.packed.Get(pool, pixels, &rows.streamed);
  if (packed == nullptr) return false;
  rows.product = ProductBy(packed->data<float>());
  rows.product.row_stride = c_.panels.columns;
  ReadPatches(*window, &rows.product);
  return use(rows);
}

std::optional<BandPlan> FloatConvolutionKernel::PlanBands(
    const RowImage& image, ThreadPool* pool) const {
  // UNITS: bytes of a band, at least; twice the weights' where those are more,
  // which are read for each band.
  constexpr int64_t kBandBytes = 128 * 1024;
  // UNITS: bytes of the image from which on bands take less time.
  constexpr int64_t kLeastBytes = 300 * 1024;
  // Rows for each thread: fewer could not be shared out evenly.
  constexpr int64_t kLeastRows = 7;
  if (image.channels != channels() || is_part() ||
      image.rows() < kLeastRows * pool->threads() ||
      4 * image.rows() * image.row_size() < kLeastBytes) {
    return std::nullopt;
  }
  BandPlan plan;
  plan.y.in = plan.y.out = image.height;
  plan.y.size = 1;
  plan.bytes = std::max(kBandBytes, 2 * c_.panels.size());
  plan.parts = pool->threads();
  return plan;
}

absl::StatusOr<bool> FloatConvolutionKernel::WithReader(
    const RowImage& image, KernelContext* context,
    absl::FunctionRef<void(const Reader&)> use) const {
  PixelwiseReader reader;
  const int64_t pixels = image.rows() * image.width;
  const Tensor* packed =
      c_.packed.Get(context->pool(), pixels, &reader.streamed);
  if (packed == nullptr) return false;
  reader.image = image;
  reader.product = ProductBy(packed->data<float>());
  reader.product.row_stride = c_.panels.columns;
  reader.product.run = channels();
  reader.product.row_bytes = 4 * channels();
  const int64_t dims[] = {image.batch, image.height, image.width,
                          c_.panels.columns};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
  reader.out = out->data<float>();
  use(reader);
  return true;
}

}  // namespace

std::unique_ptr<Kernel> MakeFloatConvolution(FloatConvolution convolution) {
  return std::make_unique<FloatConvolutionKernel>(std::move(convolution));
}

}  // namespace optfarm::runtime
