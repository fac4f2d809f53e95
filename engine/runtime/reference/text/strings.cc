// Text: StringJoin, StringSplit, StringStrip, StringLower, StringUpper,
// StringLength, Substr, ReduceJoin, base 64. Text is bytes; where an op has
// `unit`, UTF8_CHAR counts characters.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/text_function.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeStrip(const tensorflow::NodeDef&) {
  return MakeTextFunction<std::string>(
      [](const std::string& in, std::string* out) {
        *out = std::string(absl::StripAsciiWhitespace(in));
        return absl::OkStatus();
      });
}

template <bool kUpper>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCase(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string encoding,
                           graph::GetStringOr(node, "encoding", ""));
  if (!encoding.empty()) {
    return absl::UnimplementedError(
        absl::StrCat(node.op(), " has no kernel for encoding='", encoding,
                     "', only for ''"));
  }
  return MakeTextFunction<std::string>(
      [](const std::string& in, std::string* out) {
        *out = kUpper ? absl::AsciiStrToUpper(in) : absl::AsciiStrToLower(in);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEncodeBase64(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool pad,
                           graph::GetBoolOr(node, "pad", false));
  return MakeTextFunction<std::string>(
      [pad](const std::string& in, std::string* out) {
        absl::WebSafeBase64Escape(in, out);
        while (pad && out->size() % 4 != 0) out->push_back('=');
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDecodeBase64(
    const tensorflow::NodeDef&) {
  return MakeTextFunction<std::string>(
      [](const std::string& in, std::string* out) -> absl::Status {
        if (absl::WebSafeBase64Unescape(in, out)) return absl::OkStatus();
        return absl::InvalidArgumentError("a text is not web-safe base 64");
      });
}

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

absl::StatusOr<bool> ReadUnitIsCharacter(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string unit,
                           graph::GetStringOr(node, "unit", "BYTE"));
  if (unit == "BYTE" || unit == "UTF8_CHAR") return unit == "UTF8_CHAR";
  return absl::InvalidArgumentError(
      absl::StrCat("unit '", unit, "' is neither BYTE nor UTF8_CHAR"));
}

// Where the characters (or bytes) begin, and the end.
std::vector<size_t> Boundaries(const std::string& text, bool is_character) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_character || !IsContinuation(text[i])) starts.push_back(i);
  }
  starts.push_back(text.size());
  return starts;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLength(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool is_character, ReadUnitIsCharacter(node));
  return MakeKernel([is_character](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireText(input, "input"));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_INT32, input.shape()));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      const std::string& text = input.data<std::string>()[i];
      const auto length =
          is_character
              ? text.size() - static_cast<size_t>(std::count_if(
                                  text.begin(), text.end(), IsContinuation))
              : text.size();
      out->data<int32_t>()[i] = static_cast<int32_t>(length);
    }
    return absl::OkStatus();
  });
}

// Position and length, negative positions counted from the end.
absl::StatusOr<std::string> Cut(const std::string& text, int64_t pos,
                                int64_t length, bool is_character) {
  const std::vector<size_t> starts = Boundaries(text, is_character);
  const int64_t size = static_cast<int64_t>(starts.size()) - 1;
  if (pos < -size || pos > size || length < 0) {
    return absl::InvalidArgumentError(absl::StrCat("position ", pos,
                                                   " and length ", length,
                                                   " do not lie within a text "
                                                   "of length ",
                                                   size));
  }
  const int64_t begin = pos < 0 ? pos + size : pos;
  const int64_t end = begin + std::min(length, size - begin);
  return text.substr(starts[begin], starts[end] - starts[begin]);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSubstr(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_character, ReadUnitIsCharacter(node));
  return MakeKernel([is_character](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& input = context->input(0);
    const Tensor& pos = context->input(1);
    const Tensor& len = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireText(input, "input"));
    OPTFARM_RETURN_IF_ERROR(RequireShape(len, "len", pos.shape()));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> begins, pos.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             len.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                             PlanBroadcast(input.shape(), pos.shape()));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, tensorflow::DT_STRING, plan.output));
    absl::Status status;
    plan.ForEachElement([&](int64_t in_a, int64_t in_b, int64_t at) {
      absl::StatusOr<std::string> cut =
          Cut(input.data<std::string>()[in_a], begins[in_b], lengths[in_b],
              is_character);
      status.Update(cut.status());
      if (cut.ok()) out->data<std::string>()[at] = *std::move(cut);
    });
    return status;
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJoin(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string separator,
                           graph::GetStringOr(node, "separator", ""));
  return MakeKernel([separator](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    // Scalars go with every element.
    Shape shape;
    for (int i = 0; i < context->num_inputs(); ++i) {
      const Tensor& input = context->input(i);
      OPTFARM_RETURN_IF_ERROR(RequireText(input, "inputs"));
      if (input.rank() == 0) continue;
      if (shape.rank() == 0) shape = input.shape();
      OPTFARM_RETURN_IF_ERROR(RequireShape(input, "inputs", shape));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_STRING, shape));
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      std::vector<absl::string_view> parts;
      for (int i = 0; i < context->num_inputs(); ++i) {
        const Tensor& input = context->input(i);
        parts.push_back(input.data<std::string>()[input.rank() == 0 ? 0 : k]);
      }
      out->data<std::string>()[k] = absl::StrJoin(parts, separator);
    }
    return absl::OkStatus();
  });
}

// Texts in an array of `sizes`, joined along one axis; its size becomes 1.
std::vector<std::string> JoinAlong(const std::vector<std::string>& texts,
                                   size_t axis, const std::string& separator,
                                   std::vector<int64_t>* sizes) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < sizes->size(); ++i) inner *= (*sizes)[i];
  const int64_t size = (*sizes)[axis];
  (*sizes)[axis] = 1;
  int64_t count = 1;
  for (int64_t dim : *sizes) count *= dim;
  std::vector<std::string> joined(count);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<absl::string_view> parts;
    for (int64_t k = 0; k < size; ++k) {
      parts.push_back(texts[(i / inner * size + k) * inner + i % inner]);
    }
    joined[i] = absl::StrJoin(parts, separator);
  }
  return joined;
}

// The axes that `values` name, each once.
absl::StatusOr<std::vector<int>> ReadJoinedAxes(
    const std::vector<int64_t>& values, int rank) {
  std::vector<int> axes;
  for (int64_t value : values) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(value, rank));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is named twice"));
    }
    axes.push_back(axis);
  }
  return axes;
}

// The texts along some axes joined, those later in the list innermost.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceJoin(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool keep_dims,
                           graph::GetBoolOr(node, "keep_dims", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::string separator,
                           graph::GetStringOr(node, "separator", ""));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireText(input, "inputs"));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<int64_t> named,
        ReadIntegers(context->input(1), "reduction_indices"));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> order,
                             ReadJoinedAxes(named, input.rank()));
    if (order.empty()) {
      context->SetOutput(0, input);
      return absl::OkStatus();
    }
    std::vector<int64_t> out_dims;
    for (int i = 0; i < input.rank(); ++i) {
      const bool is_joined =
          std::find(order.begin(), order.end(), i) != order.end();
      if (!is_joined) out_dims.push_back(input.dim(i));
      if (is_joined && keep_dims) out_dims.push_back(1);
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(out_dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_STRING, shape));
    // One axis after another, the last of the list first.
    std::vector<std::string> texts(
        input.data<std::string>(),
        input.data<std::string>() + input.num_elements());
    std::vector<int64_t> sizes(input.shape().dims().begin(),
                               input.shape().dims().end());
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      texts = JoinAlong(texts, static_cast<size_t>(*axis), separator, &sizes);
    }
    std::move(texts.begin(), texts.end(), out->data<std::string>());
    return absl::OkStatus();
  });
}

// The pieces of each text as a sparse matrix, one row per text.
absl::Status StorePieces(
    const std::vector<std::vector<absl::string_view>>& rows,
    KernelContext* context) {
  int64_t count = 0;
  size_t longest = 0;
  for (const auto& row : rows) {
    count += static_cast<int64_t>(row.size());
    longest = std::max(longest, row.size());
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * indices,
      context->AllocateOutput(0, tensorflow::DT_INT64, Shape{count, 2}));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * values,
      context->AllocateOutput(1, tensorflow::DT_STRING, Shape{count}));
  int64_t* index = indices->data<int64_t>();
  std::string* value = values->data<std::string>();
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t k = 0; k < rows[r].size(); ++k) {
      *index++ = static_cast<int64_t>(r);
      *index++ = static_cast<int64_t>(k);
      *value++ = std::string(rows[r][k]);
    }
  }
  const int64_t shape[] = {static_cast<int64_t>(rows.size()),
                           static_cast<int64_t>(longest)};
  context->SetOutput(2, Tensor::FromValues<int64_t>(Shape{2}, shape));
  return absl::OkStatus();
}

absl::Status RequireSplit(const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(context, 3));
  OPTFARM_RETURN_IF_ERROR(RequireText(context.input(0), "input"));
  OPTFARM_RETURN_IF_ERROR(RequireRank(context.input(0), "input", 1));
  OPTFARM_RETURN_IF_ERROR(RequireText(context.input(1), "delimiter"));
  return RequireOneElement(context.input(1), "delimiter");
}

// At any character of the delimiter; at every byte when it is empty.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool skip_empty,
                           graph::GetBoolOr(node, "skip_empty", true));
  return MakeKernel([skip_empty](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireSplit(*context));
    const std::string& delimiter = *context->input(1).data<std::string>();
    std::vector<std::vector<absl::string_view>> rows;
    for (const std::string& text : context->input(0).flat<std::string>()) {
      std::vector<absl::string_view> pieces;
      const absl::string_view view = text;
      size_t begin = 0;
      for (size_t i = 0; i <= view.size(); ++i) {
        if (delimiter.empty()) {
          if (i < view.size()) pieces.push_back(view.substr(i, 1));
          continue;
        }
        if (i < view.size() && delimiter.find(view[i]) == std::string::npos) {
          continue;
        }
        if (!skip_empty || i > begin) {
          pieces.push_back(view.substr(begin, i - begin));
        }
        begin = i + 1;
      }
      rows.push_back(std::move(pieces));
    }
    return StorePieces(rows, context);
  });
}

// At the whole separator; at runs of white space when it is empty.
std::vector<absl::string_view> SplitAt(absl::string_view text,
                                       absl::string_view separator,
                                       int64_t maxsplit) {
  std::vector<absl::string_view> pieces;
  const bool at_space = separator.empty();
  if (at_space) text = absl::StripAsciiWhitespace(text);
  if (at_space && text.empty()) return pieces;
  while (maxsplit < 0 || static_cast<int64_t>(pieces.size()) < maxsplit) {
    const size_t end =
        at_space
            ? static_cast<size_t>(
                  std::find_if(text.begin(), text.end(),
                               [](char c) { return absl::ascii_isspace(c); }) -
                  text.begin())
            : text.find(separator);
    if (end == absl::string_view::npos || end >= text.size()) break;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(at_space ? end : end + separator.size());
    if (at_space) text = absl::StripLeadingAsciiWhitespace(text);
  }
  pieces.push_back(text);
  return pieces;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplitV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t maxsplit,
                           graph::GetIntOr(node, "maxsplit", -1));
  return MakeKernel([maxsplit](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireSplit(*context));
    const std::string& separator = *context->input(1).data<std::string>();
    std::vector<std::vector<absl::string_view>> rows;
    for (const std::string& text : context->input(0).flat<std::string>()) {
      rows.push_back(SplitAt(text, separator, maxsplit));
    }
    return StorePieces(rows, context);
  });
}

}  // namespace

void AddStringKernels(KernelCatalog* catalog) {
  catalog->Add("StringStrip", MakeStrip);
  catalog->Add("StringLower", MakeCase<false>);
  catalog->Add("StringUpper", MakeCase<true>);
  catalog->Add("EncodeBase64", MakeEncodeBase64);
  catalog->Add("DecodeBase64", MakeDecodeBase64);
  catalog->Add("StringLength", MakeLength);
  catalog->Add("Substr", MakeSubstr);
  catalog->Add("StringJoin", MakeJoin);
  catalog->Add("ReduceJoin", MakeReduceJoin);
  catalog->Add("StringSplit", MakeSplit);
  catalog->Add("StringSplitV2", MakeSplitV2);
}

}  // namespace optfarm::runtime
