// Einsum. A product of two tensors becomes a batched matrix product where its
// axes allow it; everything else the Einsum op sums element by element.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// One letter for each axis.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool Has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

// Letters that the equation does not use, for the axes of "...".
std::string UnusedLetters(const std::string& text) {
  std::string unused;
  for (char c = 'A'; c <= 'z'; ++c) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c)) && !Has(text, c)) {
      unused += c;
    }
  }
  return unused;
}

// The output that an equation without "->" means: axes that come once, in the
// order of the alphabet.
std::string ImpliedOutput(const std::string& inputs) {
  std::string once;
  for (const char c : inputs) {
    const bool is_axis = absl::ascii_isalpha(static_cast<unsigned char>(c));
    if (is_axis && std::count(inputs.begin(), inputs.end(), c) == 1) once += c;
  }
  std::sort(once.begin(), once.end());
  const bool has_ellipsis = inputs.find("...") != std::string::npos;
  return has_ellipsis ? absl::StrCat("...", once) : once;
}

absl::StatusOr<Equation> ReadEquation(NodeLowering& n) {
  const std::string text =
      absl::StrReplaceAll(n.String("equation", ""), {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("equation '", text.substr(0, 80), "'"));
  }
  Equation equation;
  equation.inputs = absl::StrSplit(sides[0], ',');
  equation.output = sides.size() == 2 ? sides[1] : ImpliedOutput(sides[0]);
  const std::vector<Endpoint> inputs = n.inputs();
  if (equation.inputs.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "equation '", text.substr(0, 80), "' has ", equation.inputs.size(),
        " terms for ", inputs.size(), " inputs"));
  }
  const std::string unused = UnusedLetters(text);
  size_t most = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string& term = equation.inputs[i];
    const size_t at = term.find("...");
    if (at == std::string::npos) continue;
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(inputs[i]));
    const size_t named = term.size() - 3;
    const size_t count = static_cast<size_t>(rank) - named;
    if (static_cast<size_t>(rank) < named || count > unused.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("term '", term, "' names more axes than there are"));
    }
    most = std::max(most, count);
    // The last axes of all "..." are the same.
    term.replace(at, 3, unused.substr(unused.size() - count));
  }
  const size_t at = equation.output.find("...");
  if (at != std::string::npos) {
    equation.output.replace(at, 3, unused.substr(unused.size() - most));
  }
  return equation;
}

bool HasRepeats(const std::string& labels) {
  std::string sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

// Axes by what a product does with them.
struct ProductAxes {
  std::string batch, rows, inner, columns;
};

Endpoint Ordered(NodeLowering& n, Endpoint x, const std::string& from,
                 const std::string& to) {
  std::vector<int64_t> order;
  for (const char label : to) {
    order.push_back(static_cast<int64_t>(from.find(label)));
  }
  return n.Transpose(x, order);
}

// Adds up axes that neither the other input nor the output has.
Endpoint WithoutLoneAxes(NodeLowering& n, Endpoint x, const std::string& kept,
                         std::string* labels) {
  std::vector<int64_t> axes;
  std::string rest;
  for (size_t i = 0; i < labels->size(); ++i) {
    if (Has(kept, (*labels)[i])) {
      rest += (*labels)[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  *labels = rest;
  if (axes.empty()) return x;
  return n.Add("Sum", {x, n.Int32s(axes)}, {{"keep_dims", false}});
}

// `batch` dimensions, then the two groups as one dimension each. False where
// more than one size is known only at run time.
bool AsMatrices(NodeLowering& n, size_t batch, size_t first, size_t second,
                Endpoint* x) {
  if (first == 1 && second == 1) return true;
  const PartialShape shape = n.shape(*x);
  if (!shape.has_rank()) return false;
  std::vector<int64_t> dims(shape.dims().begin(),
                            shape.dims().begin() + static_cast<int>(batch));
  const auto product = [&](size_t begin, size_t count) {
    return shape.Slice(static_cast<int>(begin), static_cast<int>(begin + count))
        .elements()
        .value_or(graph::kUnknownDim);
  };
  dims.push_back(product(batch, first));
  dims.push_back(product(batch + first, second));
  if (std::count(dims.begin(), dims.end(), graph::kUnknownDim) > 1) {
    return false;
  }
  *x = n.Reshape(*x, dims);
  return true;
}

// nothing where the product is not one of matrices.
Endpoint AsMatrixProduct(NodeLowering& n, const Equation& equation) {
  if (equation.inputs.size() != 2) return {};
  std::string a = equation.inputs[0], b = equation.inputs[1];
  const std::string& out = equation.output;
  if (HasRepeats(a) || HasRepeats(b) || HasRepeats(out)) return {};
  Endpoint x = WithoutLoneAxes(n, n.input(0), b + out, &a);
  Endpoint y = WithoutLoneAxes(n, n.input(1), a + out, &b);
  ProductAxes axes;
  for (const char label : a) {
    (!Has(b, label)    ? axes.rows
     : Has(out, label) ? axes.batch
                       : axes.inner) += label;
  }
  for (const char label : b) {
    if (!Has(a, label)) axes.columns += label;
  }
  x = Ordered(n, x, a, axes.batch + axes.rows + axes.inner);
  y = Ordered(n, y, b, axes.batch + axes.inner + axes.columns);
  const PartialShape left = n.shape(x), right = n.shape(y);
  const size_t batch = axes.batch.size();
  if (!left.has_rank() || !right.has_rank() ||
      !AsMatrices(n, batch, axes.rows.size(), axes.inner.size(), &x) ||
      !AsMatrices(n, batch, axes.inner.size(), axes.columns.size(), &y)) {
    return {};
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < batch; ++i) {
    const int at = static_cast<int>(i);
    // A size of 1 broadcasts.
    dims.push_back(left.dim(at) == 1 ? right.dim(at) : left.dim(at));
  }
  for (size_t i = 0; i < axes.rows.size(); ++i) {
    dims.push_back(left.dim(static_cast<int>(batch + i)));
  }
  for (size_t i = 0; i < axes.columns.size(); ++i) {
    dims.push_back(right.dim(static_cast<int>(batch + axes.inner.size() + i)));
  }
  const bool needs_reshape = axes.rows.size() != 1 || axes.columns.size() != 1;
  if (needs_reshape &&
      std::count(dims.begin(), dims.end(), graph::kUnknownDim) > 1) {
    return {};
  }
  Endpoint product = n.Add("BatchMatMulV2", {x, y});
  if (needs_reshape) product = n.Reshape(product, dims);
  return Ordered(n, product, axes.batch + axes.rows + axes.columns, out);
}

absl::Status LowerEinsum(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const Equation equation, ReadEquation(n));
  Endpoint y = AsMatrixProduct(n, equation);
  if (y.node == graph::kNoNode) {
    y = n.Add("Einsum", n.inputs(),
              {{"equation", absl::StrCat(absl::StrJoin(equation.inputs, ","),
                                         "->", equation.output)}});
  }
  n.SetOutput(0, y);
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {{"Einsum", LowerEinsum}};

}  // namespace

absl::Span<const LoweringRow> EinsumLowerings() { return kRows; }

}  // namespace optfarm::formats
