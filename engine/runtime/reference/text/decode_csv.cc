// DecodeCSV: lines of text to columns of values, by RFC 4180 as far as quotes
// go.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct CsvOptions {
  std::vector<DataType> types;
  char delimiter = ',';
  bool has_quotes = true;
  std::string missing;
  // Ascending numbers of the fields that are wanted; empty: all.
  std::vector<int64_t> columns;
};

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

// Reads the fields of one record.
class Fields {
 public:
  Fields(const CsvOptions& options, absl::string_view record)
      : options_(options), rest_(record) {}

  // False behind the last one.
  absl::StatusOr<bool> Next(std::string* field) {
    field->clear();
    // A delimiter at the end has an empty field behind it.
    while (!rest_.empty() && IsLineEnd(rest_[0])) rest_.remove_prefix(1);
    if (rest_.empty()) return std::exchange(is_open_, false);
    const bool is_quoted = options_.has_quotes && rest_[0] == '"';
    OPTFARM_RETURN_IF_ERROR(is_quoted ? ReadQuoted(field) : ReadPlain(field));
    is_open_ = !rest_.empty();
    if (is_open_) rest_.remove_prefix(1);
    return true;
  }

 private:
  absl::Status ReadPlain(std::string* field) {
    while (!rest_.empty() && rest_[0] != options_.delimiter) {
      if (IsLineEnd(rest_[0]) || (options_.has_quotes && rest_[0] == '"')) {
        return absl::InvalidArgumentError(
            "a field without quotes has a quote or a line end in it");
      }
      field->push_back(rest_[0]);
      rest_.remove_prefix(1);
    }
    return absl::OkStatus();
  }

  absl::Status ReadQuoted(std::string* field) {
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') {
        if (rest_.empty() || rest_[0] == options_.delimiter) {
          return absl::OkStatus();
        }
        if (rest_[0] != '"') break;
        rest_.remove_prefix(1);
      }
      field->push_back(c);
    }
    return absl::InvalidArgumentError(
        "a field in quotes must end with a quote before a delimiter or the "
        "end; a quote in it is written twice");
  }

  const CsvOptions& options_;
  absl::string_view rest_;
  // A field begins here even if there is no more text.
  bool is_open_ = false;
};

// The wanted fields. ERRORS: InvalidArgument for a wrong number of them.
absl::StatusOr<std::vector<std::string>> ReadFields(const CsvOptions& options,
                                                    absl::string_view record) {
  const size_t wanted = options.types.size();
  std::vector<std::string> fields;
  Fields reader(options, record);
  std::string field;
  for (int64_t number = 0;; ++number) {
    OPTFARM_ASSIGN_OR_RETURN(const bool is_there, reader.Next(&field));
    if (!is_there) break;
    const auto& columns = options.columns;
    if (!columns.empty() && columns[fields.size()] != number) continue;
    if (fields.size() < wanted)
      fields.push_back(std::move(field));
    else
      return absl::InvalidArgumentError(
          absl::StrCat("it has more than ", wanted, " fields"));
    if (!columns.empty() && fields.size() == wanted) break;
  }
  if (fields.size() == wanted) return fields;
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", fields.size(), " of ", wanted, " fields"));
}

template <typename T, typename Parse>
absl::Status StoreNumber(const std::string& field, Parse parse, int64_t i,
                         Tensor* out) {
  if (parse(field, out->data<T>() + i)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", field.substr(0, 40), "' is not ",
                   graph::DataTypeName(out->dtype())));
}

absl::Status Store(const std::string& field, int64_t i, Tensor* out) {
  switch (out->dtype()) {
    case tensorflow::DT_FLOAT:
      return StoreNumber<float>(
          field, [](auto text, float* v) { return absl::SimpleAtof(text, v); },
          i, out);
    case tensorflow::DT_DOUBLE:
      return StoreNumber<double>(
          field, [](auto text, double* v) { return absl::SimpleAtod(text, v); },
          i, out);
    case tensorflow::DT_INT32:
      return StoreNumber<int32_t>(
          field,
          [](auto text, int32_t* v) { return absl::SimpleAtoi(text, v); }, i,
          out);
    case tensorflow::DT_INT64:
      return StoreNumber<int64_t>(
          field,
          [](auto text, int64_t* v) { return absl::SimpleAtoi(text, v); }, i,
          out);
    default:
      out->data<std::string>()[i] = field;
      return absl::OkStatus();
  }
}

void StoreDefault(const Tensor& value, int64_t i, Tensor* out) {
  switch (out->dtype()) {
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_INT32:
      out->data<uint32_t>()[i] = *value.data<uint32_t>();
      break;
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_INT64:
      out->data<uint64_t>()[i] = *value.data<uint64_t>();
      break;
    default:
      out->data<std::string>()[i] = *value.data<std::string>();
  }
}

class DecodeCsv final : public Kernel {
 public:
  explicit DecodeCsv(CsvOptions options) : options_(std::move(options)) {}

  absl::Status Compute(KernelContext* context) const override {
    const int count = static_cast<int>(options_.types.size());
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1 + count));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, count));
    const Tensor& records = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(records, "records", tensorflow::DT_STRING));
    std::vector<Tensor*> outputs;
    for (int f = 0; f < count; ++f) {
      const Tensor& value = context->input(1 + f);
      OPTFARM_RETURN_IF_ERROR(
          RequireDtype(value, "record_defaults", options_.types[f]));
      if (value.num_elements() > 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the default of field ", f, " must be one value or none, it is ",
            value.DebugString(0)));
      }
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out,
          context->AllocateOutput(f, options_.types[f], records.shape()));
      outputs.push_back(out);
    }
    for (int64_t i = 0; i < records.num_elements(); ++i) {
      const absl::Status status =
          DecodeRecord(records.data<std::string>()[i], i, *context, outputs);
      if (!status.ok()) return Annotate(status, absl::StrCat("record ", i));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status DecodeRecord(const std::string& record, int64_t i,
                            const KernelContext& context,
                            const std::vector<Tensor*>& outputs) const {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                             ReadFields(options_, record));
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::string& field = fields[f];
      if (field.empty() || field == options_.missing) {
        const Tensor& value = context.input(static_cast<int>(f) + 1);
        if (value.num_elements() == 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("field ", f, " is required, but it is not there"));
        }
        StoreDefault(value, i, outputs[f]);
        continue;
      }
      OPTFARM_RETURN_IF_ERROR(
          Annotate(Store(field, i, outputs[f]), absl::StrCat("field ", f)));
    }
    return absl::OkStatus();
  }

  const CsvOptions options_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeDecodeCsv(
    const tensorflow::NodeDef& node) {
  CsvOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.types, graph::GetTypes(node, "OUT_TYPE"));
  for (const DataType type : options.types) {
    if (type != tensorflow::DT_FLOAT && type != tensorflow::DT_DOUBLE &&
        type != tensorflow::DT_INT32 && type != tensorflow::DT_INT64 &&
        type != tensorflow::DT_STRING) {
      return UnsupportedDtype("OUT_TYPE", type);
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string delimiter,
                           graph::GetStringOr(node, "field_delim", ","));
  OPTFARM_ASSIGN_OR_RETURN(options.has_quotes,
                           graph::GetBoolOr(node, "use_quote_delim", true));
  OPTFARM_ASSIGN_OR_RETURN(options.missing,
                           graph::GetStringOr(node, "na_value", ""));
  if (graph::FindAttr(node, "select_cols") != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(options.columns,
                             graph::GetInts(node, "select_cols"));
  }
  if (delimiter.size() != 1 || delimiter[0] == '"' || IsLineEnd(delimiter[0])) {
    return absl::InvalidArgumentError(
        "'field_delim' must be one character, not a quote and no line end");
  }
  options.delimiter = delimiter[0];
  const std::vector<int64_t>& columns = options.columns;
  bool fits = columns.empty() ||
              (columns.size() == options.types.size() && columns.front() >= 0);
  for (size_t i = 1; i < columns.size(); ++i) {
    fits &= columns[i - 1] < columns[i];
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        "'select_cols' must be ascending numbers, one for each output");
  }
  return std::make_unique<DecodeCsv>(std::move(options));
}

}  // namespace

void AddDecodeCsvKernels(KernelCatalog* catalog) {
  catalog->Add("DecodeCSV", MakeDecodeCsv);
}

}  // namespace optfarm::runtime
