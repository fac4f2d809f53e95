// Custom operators, whose options are a FlexBuffer.

#include <map>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/weights.h"
#include "engine/graph/attr.h"
#include "flatbuffers/flexbuffers.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// A map of named numbers. The FlexBuffers library of Debian has no verifier, so
// that we read the few forms that such options have by ourselves.
class NamedNumbers {
 public:
  // ERRORS: InvalidArgument where the bytes are no map, or lead out of
  // themselves.
  static absl::StatusOr<NamedNumbers> Parse(absl::string_view bytes);
  double Get(absl::string_view name, double absent) const {
    const auto it = values_.find(std::string(name));
    return it == values_.end() ? absent : it->second;
  }

 private:
  std::map<std::string, double> values_;
};

absl::Status DamagedOptions() {
  return absl::InvalidArgumentError("its options are damaged");
}

// Bytes that are read with their bounds checked.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  bool Has(int64_t at, int64_t width) const {
    return at >= 0 && width > 0 && width <= 8 && at <= size() - width;
  }
  // REQUIRES: Has(at, width).
  uint64_t Unsigned(int64_t at, int64_t width) const {
    uint64_t value = 0;
    for (int64_t i = width - 1; i >= 0; --i) {
      value = value << 8 | static_cast<uint8_t>(bytes_[at + i]);
    }
    return value;
  }
  int64_t Signed(int64_t at, int64_t width) const {
    const uint64_t value = Unsigned(at, width);
    const int shift = static_cast<int>(64 - 8 * width);
    return static_cast<int64_t>(value << shift) >> shift;
  }
  double Float(int64_t at, int64_t width) const {
    const uint64_t bits = Unsigned(at, width);
    if (width == 8) return absl::bit_cast<double>(bits);
    return absl::bit_cast<float>(static_cast<uint32_t>(bits));
  }
  std::string Text(int64_t at) const {
    const size_t end = bytes_.find('\0', at);
    return end == absl::string_view::npos
               ? std::string()
               : std::string(bytes_.substr(at, end - at));
  }
  // Where an offset at `at` leads; -1 when it leads out.
  int64_t Follow(int64_t at, int64_t width) const {
    if (!Has(at, width)) return -1;
    const uint64_t back = Unsigned(at, width);
    return back > static_cast<uint64_t>(at) ? -1
                                            : at - static_cast<int64_t>(back);
  }

 private:
  absl::string_view bytes_;
};

// A value of packed type `type` (kind times 4, plus the width's logarithm where
// the value is behind an offset) in `width` bytes at `at`.
absl::StatusOr<double> NumberAt(const Reader& reader, int64_t at, int64_t width,
                                uint8_t type) {
  const int kind = type >> 2;
  int64_t place = at, size = width;
  const bool is_indirect = kind >= flexbuffers::FBT_INDIRECT_INT &&
                           kind <= flexbuffers::FBT_INDIRECT_FLOAT;
  if (is_indirect) {
    place = reader.Follow(at, width);
    size = int64_t{1} << (type & 3);
  }
  if (!reader.Has(place, size)) return DamagedOptions();
  switch (kind) {
    case flexbuffers::FBT_INT:
    case flexbuffers::FBT_INDIRECT_INT:
      return static_cast<double>(reader.Signed(place, size));
    case flexbuffers::FBT_UINT:
    case flexbuffers::FBT_INDIRECT_UINT:
    case flexbuffers::FBT_BOOL:
      return static_cast<double>(reader.Unsigned(place, size));
    case flexbuffers::FBT_FLOAT:
    case flexbuffers::FBT_INDIRECT_FLOAT:
      if (size < 4) return DamagedOptions();
      return reader.Float(place, size);
    default:
      // Text and the like: not a number that anybody asks for.
      return 0.0;
  }
}

absl::StatusOr<NamedNumbers> NamedNumbers::Parse(absl::string_view bytes) {
  const Reader reader(bytes);
  NamedNumbers numbers;
  if (reader.size() < 3) return DamagedOptions();
  const int64_t root_width = static_cast<uint8_t>(bytes[bytes.size() - 1]);
  const auto root_type = static_cast<uint8_t>(bytes[bytes.size() - 2]);
  const int64_t map = reader.Follow(reader.size() - 2 - root_width, root_width);
  if (root_type >> 2 != flexbuffers::FBT_MAP || map < 0) {
    return DamagedOptions();
  }
  // In front of a map: its keys, their width, and how many there are.
  const int64_t width = int64_t{1} << (root_type & 3);
  const int64_t keys = reader.Follow(map - 3 * width, width);
  if (!reader.Has(map - width, width) || !reader.Has(map - 2 * width, width) ||
      keys < 0) {
    return DamagedOptions();
  }
  const uint64_t count = reader.Unsigned(map - width, width);
  const auto key_width =
      static_cast<int64_t>(reader.Unsigned(map - 2 * width, width));
  if (count > bytes.size() || key_width < 1 || key_width > 8) {
    return DamagedOptions();
  }
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const int64_t key = reader.Follow(keys + i * key_width, key_width);
    const int64_t type = map + static_cast<int64_t>(count) * width + i;
    if (key < 0 || !reader.Has(type, 1)) return DamagedOptions();
    OPTFARM_ASSIGN_OR_RETURN(numbers.values_[reader.Text(key)],
                             NumberAt(reader, map + i * width, width,
                                      static_cast<uint8_t>(bytes[type])));
  }
  return numbers;
}

absl::Status LowerDetections(OpLowering& c) {
  const auto* options = c.op().custom_options();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  OPTFARM_ASSIGN_OR_RETURN(
      const NamedNumbers numbers,
      NamedNumbers::Parse(absl::string_view(
          reinterpret_cast<const char*>(options->data()), options->size())));
  const auto set_int = [&](tensorflow::NodeDef* node, const char* name,
                           int64_t absent) {
    const double value = numbers.Get(name, static_cast<double>(absent));
    const bool is_sane = value >= -1e9 && value <= 1e9;
    graph::SetInt(node, name, is_sane ? static_cast<int64_t>(value) : -1);
  };
  const auto set_float = [&](tensorflow::NodeDef* node, const char* name,
                             double absent) {
    graph::SetFloat(node, name, static_cast<float>(numbers.Get(name, absent)));
  };
  const Value found = c.Add(
      "DetectionPostprocess", "detections", {c.Real(0), c.Real(1), c.Real(2)},
      [&](tensorflow::NodeDef* node) {
        set_int(node, "max_detections", 0);
        set_int(node, "max_classes_per_detection", 1);
        set_int(node, "detections_per_class", 100);
        set_int(node, "num_classes", 0);
        graph::SetBool(node, "use_regular_nms",
                       numbers.Get("use_regular_nms", 0) != 0);
        set_float(node, "nms_score_threshold", 0);
        set_float(node, "nms_iou_threshold", 0);
        for (const char* name : {"y_scale", "x_scale", "h_scale", "w_scale"}) {
          set_float(node, name, 1);
        }
      });
  for (int i = 0; i < 4 && i < c.output_count(); ++i) {
    c.SetReal(i, c.Port(found, i));
  }
  return absl::OkStatus();
}

// MediaPipe's TRANSPOSE_CONV with a bias: image, weights [out, height, width,
// in] and bias. Its options are three int32: padding, 1 for SAME and 2 for
// VALID, and strides of width and height.
absl::Status LowerTransposedConvolution(OpLowering& c) {
  const auto* options = c.op().custom_options();
  if (options == nullptr || options->size() < 12) return DamagedOptions();
  const Reader reader(absl::string_view(
      reinterpret_cast<const char*>(options->data()), options->size()));
  const int64_t padding = reader.Signed(0, 4);
  const int64_t stride_w = reader.Signed(4, 4), stride_h = reader.Signed(8, 4);
  if ((padding != 1 && padding != 2) || stride_w < 1 || stride_h < 1) {
    return absl::InvalidArgumentError(absl::StrCat("its options say padding ",
                                                   padding, " and strides ",
                                                   stride_h, "x", stride_w));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 4));
  if (!c.Has(0)) return absl::InvalidArgumentError("has no image");
  const std::vector<int64_t> image = ShapeOf(c.in(0));
  const std::vector<int64_t>& filter = weights.shape();
  constexpr int64_t kMostPixels = int64_t{1} << 20;
  if (image.size() != 4 || image[0] < 1 || image[1] < 1 || image[2] < 1 ||
      image[1] > kMostPixels / stride_h || image[2] > kMostPixels / stride_w ||
      filter[0] < 1 || filter[1] < 1 || filter[2] < 1) {
    return Unsupported("an image or weights of unknown size");
  }
  const bool is_same = padding == 1;
  const auto size = [is_same](int64_t pixels, int64_t stride, int64_t window) {
    return is_same ? pixels * stride : (pixels - 1) * stride + window;
  };
  const Value sizes =
      c.IntVector("sizes", {image[0], size(image[1], stride_h, filter[1]),
                            size(image[2], stride_w, filter[2]), filter[0]});
  const Value sums =
      c.Add("Conv2DBackpropInput", "transposed",
            {sizes, weights.Permuted({1, 2, 0, 3}, "filter"), c.Real(0)},
            [&](tensorflow::NodeDef* node) {
              SetInts(node, "strides", {1, stride_h, stride_w, 1});
              graph::SetString(node, "padding", is_same ? "SAME" : "VALID");
            });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 2, 0, weights));
  c.SetReal(0, biased);
  return absl::OkStatus();
}

constexpr CustomOperatorRow kRows[] = {
    {"Convolution2DTransposeBias", LowerTransposedConvolution},
    {"TFLite_Detection_PostProcess", LowerDetections},
};

}  // namespace

absl::Span<const CustomOperatorRow> CustomRows() { return kRows; }

}  // namespace optfarm::tflite
