// Serialized examples to tensors: ParseExample, ParseSingleExample. A dense
// feature of an example has a shape and stands in one tensor for the whole
// batch; one whose first dimension is not known is padded to the longest. A
// sparse feature has any number of values and becomes a sparse tensor.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/example_features.h"
#include "engine/runtime/reference/text/text_function.h"
#include "tensorflow/core/example/example.pb.h"

namespace optfarm::runtime {
namespace {

using tensorflow::Feature;

// A feature's values of one type. The types are those that a Feature has.
template <typename Visitor>
absl::Status VisitValues(const Feature& feature, DataType dtype,
                         Visitor visit) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return visit(feature.float_list().value(), float());
    case tensorflow::DT_INT64:
      return visit(feature.int64_list().value(), int64_t());
    default:
      return visit(feature.bytes_list().value(), std::string());
  }
}

// nullptr when the example lacks the feature.
// ERRORS: InvalidArgument when it has another type.
absl::StatusOr<const Feature*> FindFeature(const tensorflow::Example& example,
                                           const std::string& key,
                                           DataType dtype) {
  const auto it = example.features().feature().find(key);
  if (it == example.features().feature().end() ||
      it->second.kind_case() == Feature::KIND_NOT_SET) {
    return nullptr;
  }
  const Feature& feature = it->second;
  const bool fits = dtype == tensorflow::DT_FLOAT   ? feature.has_float_list()
                    : dtype == tensorflow::DT_INT64 ? feature.has_int64_list()
                                                    : feature.has_bytes_list();
  if (fits) return &feature;
  return absl::InvalidArgumentError(
      absl::StrCat("feature '", key, "' is not of ", graph::DataTypeName(dtype),
                   " as the op wants it"));
}

int64_t CountOf(const Feature& feature) {
  switch (feature.kind_case()) {
    case Feature::kFloatList:
      return feature.float_list().value_size();
    case Feature::kInt64List:
      return feature.int64_list().value_size();
    case Feature::kBytesList:
      return feature.bytes_list().value_size();
    case Feature::KIND_NOT_SET:
      break;
  }
  return 0;
}

absl::Status CopyValues(const Feature& feature, DataType dtype, int64_t at,
                        Tensor* out) {
  return VisitValues(feature, dtype,
                     [&](const auto& values, auto zero) -> absl::Status {
                       std::copy(values.begin(), values.end(),
                                 out->data<decltype(zero)>() + at);
                       return absl::OkStatus();
                     });
}

// `count` elements from `at` on, all of them `value`'s one element; zero when
// it has none.
absl::Status FillValues(const Tensor& value, int64_t at, int64_t count,
                        Tensor* out) {
  return VisitValues(
      Feature(), out->dtype(), [&](const auto&, auto zero) -> absl::Status {
        using T = decltype(zero);
        const T fill = value.num_elements() == 0 ? zero : *value.data<T>();
        std::fill_n(out->data<T>() + at, count, fill);
        return absl::OkStatus();
      });
}

absl::Status CopyTensor(const Tensor& from, int64_t at, Tensor* out) {
  return VisitValues(
      Feature(), out->dtype(), [&](const auto&, auto zero) -> absl::Status {
        using T = decltype(zero);
        std::copy_n(from.data<T>(), from.num_elements(), out->data<T>() + at);
        return absl::OkStatus();
      });
}

// What was read of the op's inputs. A single example is a batch without a
// dimension.
struct Batch {
  std::vector<tensorflow::Example> examples;
  bool is_single = false;

  int64_t size() const { return static_cast<int64_t>(examples.size()); }
};

absl::StatusOr<Batch> ReadBatch(const Tensor& serialized, bool is_single) {
  OPTFARM_RETURN_IF_ERROR(RequireText(serialized, "serialized"));
  OPTFARM_RETURN_IF_ERROR(
      RequireRank(serialized, "serialized", is_single ? 0 : 1));
  Batch batch;
  batch.is_single = is_single;
  for (const std::string& text : serialized.flat<std::string>()) {
    batch.examples.emplace_back();
    if (!batch.examples.back().ParseFromString(text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("text ", batch.examples.size() - 1,
                       " of 'serialized' is no tensorflow.Example"));
    }
  }
  return batch;
}

absl::StatusOr<Shape> WithBatch(const Batch& batch, std::vector<int64_t> dims) {
  if (!batch.is_single) dims.insert(dims.begin(), batch.size());
  return Shape::FromDims(dims);
}

absl::Status StoreFixed(const Batch& batch, const std::string& key,
                        const DenseFeature& dense, const Tensor& absent,
                        int output, KernelContext* context) {
  const auto dims = dense.shape.dims();
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           WithBatch(batch, {dims.begin(), dims.end()}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(output, dense.dtype, shape));
  const int64_t count = dense.shape.num_elements();
  for (int64_t b = 0; b < batch.size(); ++b) {
    OPTFARM_ASSIGN_OR_RETURN(const Feature* feature,
                             FindFeature(batch.examples[b], key, dense.dtype));
    if (feature == nullptr && absent.num_elements() == count && count > 0) {
      OPTFARM_RETURN_IF_ERROR(CopyTensor(absent, b * count, out));
      continue;
    }
    if (feature == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "example ", b, " lacks feature '", key,
          "', which has no default of shape ", dense.shape.ToString()));
    }
    if (CountOf(*feature) != count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature '", key, "' of example ", b, " has ", CountOf(*feature),
          " values, but its shape is ", dense.shape.ToString()));
    }
    OPTFARM_RETURN_IF_ERROR(CopyValues(*feature, dense.dtype, b * count, out));
  }
  return absl::OkStatus();
}

absl::Status StorePadded(const Batch& batch, const std::string& key,
                         const DenseFeature& dense, const Tensor& padding,
                         int output, KernelContext* context) {
  const int64_t row = dense.shape.num_elements();
  if (padding.num_elements() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature '", key, "' is padded with one value, but its default has ",
        padding.num_elements()));
  }
  std::vector<const Feature*> features;
  int64_t longest = 0;
  for (const tensorflow::Example& example : batch.examples) {
    OPTFARM_ASSIGN_OR_RETURN(const Feature* feature,
                             FindFeature(example, key, dense.dtype));
    features.push_back(feature);
    const int64_t count = feature == nullptr ? 0 : CountOf(*feature);
    if (count % row != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", key, "' has ", count,
                       " values, which is no multiple of ", row));
    }
    longest = std::max(longest, count / row);
  }
  std::vector<int64_t> dims(dense.shape.dims().begin(),
                            dense.shape.dims().end());
  dims.insert(dims.begin(), longest);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, WithBatch(batch, dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(output, dense.dtype, shape));
  OPTFARM_RETURN_IF_ERROR(FillValues(padding, 0, shape.num_elements(), out));
  for (size_t b = 0; b < features.size(); ++b) {
    if (features[b] == nullptr) continue;
    OPTFARM_RETURN_IF_ERROR(CopyValues(*features[b], dense.dtype,
                                       static_cast<int64_t>(b) * longest * row,
                                       out));
  }
  return absl::OkStatus();
}

// Outputs `first`, and as many as there are sparse features further on.
absl::Status StoreSparse(const Batch& batch, const std::string& key,
                         DataType dtype, int first, int step,
                         KernelContext* context) {
  std::vector<const Feature*> features;
  int64_t total = 0;
  int64_t longest = 0;
  for (const tensorflow::Example& example : batch.examples) {
    OPTFARM_ASSIGN_OR_RETURN(const Feature* feature,
                             FindFeature(example, key, dtype));
    features.push_back(feature);
    const int64_t count = feature == nullptr ? 0 : CountOf(*feature);
    total += count;
    longest = std::max(longest, count);
  }
  const int64_t rank = batch.is_single ? 1 : 2;
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * indices,
      context->AllocateOutput(first, tensorflow::DT_INT64, Shape{total, rank}));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * values,
      context->AllocateOutput(first + step, dtype, Shape{total}));
  int64_t at = 0;
  int64_t* index = indices->data<int64_t>();
  for (size_t b = 0; b < features.size(); ++b) {
    if (features[b] == nullptr) continue;
    OPTFARM_RETURN_IF_ERROR(CopyValues(*features[b], dtype, at, values));
    const int64_t count = CountOf(*features[b]);
    for (int64_t k = 0; k < count; ++k) {
      if (rank == 2) *index++ = static_cast<int64_t>(b);
      *index++ = k;
    }
    at += count;
  }
  std::vector<int64_t> shape = {longest};
  if (rank == 2) shape.insert(shape.begin(), batch.size());
  context->SetOutput(first + 2 * step,
                     Tensor::FromValues<int64_t>(Shape{rank}, shape));
  return absl::OkStatus();
}

struct Keys {
  std::vector<std::string> sparse;
  std::vector<std::string> dense;
};

// `first_default`: the input that is the first dense feature's default.
absl::Status StoreAll(const Batch& batch, const ExampleFeatures& features,
                      const Keys& keys, int first_default,
                      KernelContext* context) {
  const int sparse = static_cast<int>(features.sparse.size());
  const int dense = static_cast<int>(features.dense.size());
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 3 * sparse + dense));
  for (int i = 0; i < sparse; ++i) {
    OPTFARM_RETURN_IF_ERROR(StoreSparse(
        batch, keys.sparse[i], features.sparse[i], i, sparse, context));
  }
  for (int i = 0; i < dense; ++i) {
    const DenseFeature& feature = features.dense[i];
    const Tensor& absent = context->input(first_default + i);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(absent, "dense_defaults", feature.dtype));
    const auto store = feature.has_any_length ? StorePadded : StoreFixed;
    OPTFARM_RETURN_IF_ERROR(
        store(batch, keys.dense[i], feature, absent, 3 * sparse + i, context));
  }
  return absl::OkStatus();
}

// Keys that are inputs, from input `first` on.
absl::StatusOr<std::vector<std::string>> ReadKeys(const KernelContext& context,
                                                  int first, size_t count) {
  std::vector<std::string> keys;
  for (int i = first; i < first + static_cast<int>(count); ++i) {
    OPTFARM_RETURN_IF_ERROR(RequireText(context.input(i), "a key"));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(context.input(i), "a key"));
    keys.push_back(*context.input(i).data<std::string>());
  }
  return keys;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeParseExample(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const ExampleFeatures features,
                           ReadExampleFeatures(node));
  return MakeKernel([features](KernelContext* context) -> absl::Status {
    const size_t sparse = features.sparse.size();
    const size_t dense = features.dense.size();
    OPTFARM_RETURN_IF_ERROR(
        RequireInputs(*context, static_cast<int>(2 + sparse + 2 * dense)));
    Keys keys;
    OPTFARM_ASSIGN_OR_RETURN(keys.sparse, ReadKeys(*context, 2, sparse));
    const int first_dense = 2 + static_cast<int>(sparse);
    OPTFARM_ASSIGN_OR_RETURN(keys.dense,
                             ReadKeys(*context, first_dense, dense));
    OPTFARM_ASSIGN_OR_RETURN(const Batch batch,
                             ReadBatch(context->input(0), false));
    return StoreAll(batch, features, keys,
                    first_dense + static_cast<int>(dense), context);
  });
}

std::vector<std::string> KeysAttr(const tensorflow::NodeDef& node,
                                  const char* name) {
  const auto it = node.attr().find(name);
  if (it == node.attr().end()) return {};
  const auto& values = it->second.list().s();
  return {values.begin(), values.end()};
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeParseSingleExample(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const ExampleFeatures features,
                           ReadExampleFeatures(node));
  const Keys keys = {KeysAttr(node, "sparse_keys"),
                     KeysAttr(node, "dense_keys")};
  if (keys.sparse.size() != features.sparse.size() ||
      keys.dense.size() != features.dense.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", keys.sparse.size(), " sparse and ", keys.dense.size(),
        " dense keys for ", features.sparse.size(), " and ",
        features.dense.size(), " features"));
  }
  return MakeKernel([features, keys](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(
        RequireInputs(*context, 1 + static_cast<int>(features.dense.size())));
    OPTFARM_ASSIGN_OR_RETURN(const Batch batch,
                             ReadBatch(context->input(0), true));
    return StoreAll(batch, features, keys, 1, context);
  });
}

}  // namespace

void AddParseExampleKernels(KernelCatalog* catalog) {
  catalog->Add("ParseExample", MakeParseExample);
  catalog->Add("ParseSingleExample", MakeParseSingleExample);
}

}  // namespace optfarm::runtime
