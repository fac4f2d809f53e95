#include "engine/runtime/fusion/element_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {
namespace {

using Kind = ElementInstruction::Kind;

// UNITS: elements worth handing to another thread.
constexpr int64_t kGrain = 16 * 1024;
// UNITS: elements of a row where rows need not be those of the tensors.
constexpr int64_t kBlock = 1024;

// UNITS: elements. Many rows below this cost more than the steps apart, which
// go through columns.
constexpr int64_t kNarrow = 16;
constexpr int64_t kFewRows = 8;

// What a value is in a run.
struct Place {
  // UNITS: elements from one row to the next; 0 for a value that is the same in
  // all rows, or that is there for one row at a time.
  int64_t stride = 0;
  // UNITS: elements of a row; 1 goes with any other.
  int64_t width = 0;
  // It has the model's leading dimensions.
  bool is_full = false;
  // UNITS: elements of an input's row that is repeated until a block is full; 0
  // for one that is read where it stands.
  int64_t period = 0;
};

struct Layout {
  // The input that the others are seen against.
  const Tensor* model = nullptr;
  int64_t rows = 0;
  // Rows are pieces of this many elements out of `elements`; 0 where they are
  // the tensors' own.
  int64_t block = 0;
  int64_t elements = 0;
  absl::InlinedVector<Place, 32> places;
};

// An instruction as it is run: small, because what runs between two steps often
// leaves nothing of them in the level-1 cache.
struct PackedInstruction {
  ElementFunction run = nullptr;
  Kind kind = Kind::kFunction;
  bool is_output = false;
  int16_t part = 0;
  int32_t parts = 1;
  int32_t result = 0;
  // Of a function and a part. A join has operands [first, last) of all joins.
  int32_t first = 0;
  int32_t last = 0;
};

bool HasLeadingDims(const Tensor& tensor, const Tensor& model) {
  if (tensor.rank() != model.rank()) return false;
  for (int i = 0; i + 1 < model.rank(); ++i) {
    if (tensor.dim(i) != model.dim(i)) return false;
  }
  return true;
}

// False for an input that is not served.
bool PlaceInput(const Tensor& input, const Tensor& model, Place* place) {
  const int64_t count = input.num_elements();
  const int64_t width = count == 1 ? 1 : input.dim(input.rank() - 1);
  const bool is_full = HasLeadingDims(input, model);
  place->is_full = is_full;
  place->width = width;
  place->stride = is_full ? width : 0;
  return is_full || count == width;
}

// Working memory of one range of rows: a little stands on the stack.
class Room {
 public:
  explicit Room(int64_t count) {
    if (count > kFew) many_.emplace(count);
  }
  float* data() { return many_ ? many_->data() : few_; }

 private:
  static constexpr int64_t kFew = 4096;
  alignas(64) float few_[kFew];
  std::optional<Scratch<float>> many_;
};

class ElementKernel final : public Kernel {
 public:
  ElementKernel(const ElementProgram& program, StepChain chain)
      : inputs_(program.inputs),
        output_of_(program.values, -1),
        chain_(std::move(chain)) {
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      output_of_[program.outputs[i]] = static_cast<int>(i);
    }
    for (const ElementInstruction& i : program.instructions) Pack(i);
    outputs_.resize(program.outputs.size());
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      outputs_[i].value = program.outputs[i];
    }
    FindForwards(program);
  }

  absl::Status Compute(KernelContext* context) const override {
    Layout layout;
    if (!PlaceInputs(*context, &layout) || !PlaceResults(&layout)) {
      return chain_.Run(context);
    }
    CutIntoBlocks(&layout);
    if (layout.rows > kFewRows && IsNarrow(layout)) return chain_.Run(context);
    // Of the first row; working memory has none yet.
    absl::InlinedVector<float*, 32> at(layout.places.size());
    for (int i = 0; i < inputs_; ++i) {
      at[i] = const_cast<float*>(context->input(i).data<float>());
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      OPTFARM_ASSIGN_OR_RETURN(
          Tensor * out, MakeOutput(static_cast<int>(i), layout, context));
      at[outputs_[i].value] = out->data<float>();
    }
    if (layout.rows == 1) {
      RunRows(layout, at, 0, 1);
      return absl::OkStatus();
    }
    const int64_t work = layout.elements / layout.rows *
                         static_cast<int64_t>(instructions_.size());
    context->pool()->ParallelFor(
        layout.rows, 1 + kGrain / (work + 1),
        [&](int64_t begin, int64_t end) { RunRows(layout, at, begin, end); });
    return absl::OkStatus();
  }

 private:
  struct Output {
    int value = 0;
    // Inputs whose buffers it may take over: those that nothing reads after the
    // function that makes it.
    absl::InlinedVector<int, 4> forwards;
  };

  void Pack(const ElementInstruction& instruction) {
    PackedInstruction packed;
    packed.run = instruction.run;
    packed.kind = instruction.kind;
    packed.is_output = output_of_[instruction.result] >= 0;
    packed.part = static_cast<int16_t>(instruction.part);
    packed.parts = instruction.parts;
    packed.result = instruction.result;
    packed.first = instruction.operands.front();
    packed.last = instruction.operands.back();
    if (instruction.kind == Kind::kJoin) {
      packed.first = static_cast<int32_t>(joined_.size());
      joined_.insert(joined_.end(), instruction.operands.begin(),
                     instruction.operands.end());
      packed.last = static_cast<int32_t>(joined_.size());
    }
    instructions_.push_back(packed);
    if (instruction.kind == Kind::kFunction) return;
    has_rows_ = true;
    if (instruction.axis < 0) return;
    has_axes_ |= axis_ >= 0 && axis_ != instruction.axis;
    axis_ = instruction.axis;
  }

  void FindForwards(const ElementProgram& program) {
    std::vector<int> last(program.inputs, -1);
    const int count = static_cast<int>(program.instructions.size());
    for (int i = 0; i < count; ++i) {
      const ElementInstruction& instruction = program.instructions[i];
      for (int value : instruction.operands) {
        if (value >= program.inputs) continue;
        // Parts and joins are read in other places than they are written.
        last[value] = std::max(last[value],
                               instruction.kind == Kind::kFunction ? i : count);
      }
    }
    for (int i = 0; i < count; ++i) {
      const ElementInstruction& instruction = program.instructions[i];
      const int output = output_of_[instruction.result];
      if (output < 0 || instruction.kind != Kind::kFunction) continue;
      for (int value = 0; value < program.inputs; ++value) {
        if (last[value] <= i) outputs_[output].forwards.push_back(value);
      }
    }
  }

  bool PlaceInputs(const KernelContext& context, Layout* layout) const {
    const Tensor* model = nullptr;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& input = context.input(i);
      if (!input.has_value()) return false;
      if (i >= inputs_) continue;
      if (input.dtype() != tensorflow::DT_FLOAT || input.num_elements() == 0) {
        return false;
      }
      if (model == nullptr || input.rank() > model->rank() ||
          (input.rank() == model->rank() &&
           input.num_elements() > model->num_elements())) {
        model = &input;
      }
    }
    if (model == nullptr || model->rank() == 0) return false;
    // Parts and joins are along the last dimension.
    if (axis_ >= 0 && (has_axes_ || axis_ != model->rank() - 1)) return false;
    layout->model = model;
    layout->elements = model->num_elements();
    layout->rows = layout->elements / model->dim(model->rank() - 1);
    layout->places.resize(output_of_.size());
    for (int i = 0; i < inputs_; ++i) {
      if (!PlaceInput(context.input(i), *model, &layout->places[i])) {
        return false;
      }
    }
    return true;
  }

  bool PlaceResults(Layout* layout) const {
    Place* const places = layout->places.data();
    for (const PackedInstruction& instruction : instructions_) {
      int64_t width = 0;
      bool is_full = true;
      if (instruction.kind == Kind::kFunction) {
        const Place& a = places[instruction.first];
        const Place& b = places[instruction.last];
        width = std::max(a.width, b.width);
        is_full = a.is_full || b.is_full;
        if ((a.width != width && a.width != 1) ||
            (b.width != width && b.width != 1)) {
          return false;
        }
      } else if (instruction.kind == Kind::kPart) {
        const Place& whole = places[instruction.first];
        width = whole.width / instruction.parts;
        if (!whole.is_full || width * instruction.parts != whole.width) {
          return false;
        }
      } else {
        for (int i = instruction.first; i < instruction.last; ++i) {
          width += places[joined_[i]].width;
          is_full &= places[joined_[i]].is_full;
        }
        if (!is_full) return false;
      }
      if (instruction.is_output && !is_full) return false;
      Place& result = places[instruction.result];
      result.width = width;
      result.is_full = is_full;
      result.stride = instruction.is_output ? width : 0;
    }
    return true;
  }

  static bool IsNarrow(const Layout& layout) {
    return std::all_of(
        layout.places.begin(), layout.places.end(),
        [](const Place& place) { return place.width < kNarrow; });
  }

  // Values of one shape and single numbers are one long row, which is cut into
  // blocks. Where there are single rows too, a block is as many rows as fit.
  void CutIntoBlocks(Layout* layout) const {
    if (has_rows_ || layout->elements <= kBlock) return;
    const int64_t width = layout->model->dim(layout->model->rank() - 1);
    bool has_single_rows = false;
    for (const Place& place : layout->places) {
      if (place.width != width && (place.is_full || place.width != 1)) return;
      has_single_rows |= !place.is_full && place.width > 1;
    }
    if (has_single_rows && width > kBlock / 2) return;
    const int64_t block = has_single_rows ? kBlock / width * width : kBlock;
    layout->block = block;
    layout->rows = (layout->elements + block - 1) / block;
    for (size_t v = 0; v < layout->places.size(); ++v) {
      Place& place = layout->places[v];
      if (!place.is_full && place.width == 1) continue;
      if (!place.is_full && static_cast<int>(v) < inputs_) place.period = width;
      place.width = block;
      if (place.stride > 0) place.stride = block;
    }
  }

  absl::StatusOr<Tensor*> MakeOutput(int output, const Layout& layout,
                                     KernelContext* context) const {
    const Tensor& model = *layout.model;
    const int last = model.rank() - 1;
    const int64_t width = layout.places[outputs_[output].value].width;
    if (layout.block == 0 && width != model.dim(last)) {
      OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                               WithDim(model.shape(), last, width));
      return MakeOutputOf(output, shape, context);
    }
    return MakeOutputOf(output, model.shape(), context);
  }

  absl::StatusOr<Tensor*> MakeOutputOf(int output, const Shape& shape,
                                       KernelContext* context) const {
    for (int input : outputs_[output].forwards) {
      if (context->input(input).shape() == shape && context->MayReuse(input)) {
        return context->ForwardOrAllocateOutput(output, input,
                                                tensorflow::DT_FLOAT, shape);
      }
    }
    return context->AllocateOutput(output, tensorflow::DT_FLOAT, shape);
  }

  // `at` is where values stand in the first row.
  void RunRows(const Layout& layout, absl::InlinedVector<float*, 32> at,
               int64_t begin, int64_t end) const {
    const absl::Span<const Place> places = layout.places;
    int64_t room_size = 0;
    for (size_t v = 0; v < places.size(); ++v) {
      if (NeedsRoom(v, places[v])) room_size += RoomOf(places[v].width);
    }
    Room room(room_size);
    float* free = room.data();
    for (size_t v = 0; v < places.size(); ++v) {
      if (!NeedsRoom(v, places[v])) {
        at[v] += begin * places[v].stride;
        continue;
      }
      if (places[v].period > 0) Repeat(at[v], places[v], free);
      at[v] = free;
      free += RoomOf(places[v].width);
    }
    for (int64_t row = begin; row < end; ++row) {
      const int64_t left =
          layout.block == 0 ? INT64_MAX : layout.elements - row * layout.block;
      for (const PackedInstruction& instruction : instructions_) {
        // What is the same in all rows is still there from the first.
        if (row > begin && !places[instruction.result].is_full) continue;
        RunInstruction(instruction, places, left, at.data());
      }
      for (size_t v = 0; v < places.size(); ++v) at[v] += places[v].stride;
    }
  }

  bool NeedsRoom(size_t value, const Place& place) const {
    return static_cast<int>(value) < inputs_ ? place.period > 0
                                             : output_of_[value] < 0;
  }

  static void Repeat(const float* row, const Place& place, float* to) {
    for (int64_t i = 0; i < place.width; i += place.period) {
      std::copy_n(row, place.period, to + i);
    }
  }

  // Rows begin at cache lines.
  static int64_t RoomOf(int64_t width) { return (width + 15) / 16 * 16; }

  // `left` elements are there from this row on.
  void RunInstruction(const PackedInstruction& instruction,
                      absl::Span<const Place> places, int64_t left,
                      float** at) const {
    const int64_t width = places[instruction.result].width;
    float* const out = at[instruction.result];
    if (instruction.kind == Kind::kFunction) {
      const int a = instruction.first, b = instruction.last;
      instruction.run({at[a], places[a].width == width},
                      {at[b], places[b].width == width}, std::min(width, left),
                      out);
    } else if (instruction.kind == Kind::kJoin) {
      float* to = out;
      for (int i = instruction.first; i < instruction.last; ++i) {
        to = std::copy_n(at[joined_[i]], places[joined_[i]].width, to);
      }
    } else {
      float* const from = at[instruction.first] + instruction.part * width;
      if (instruction.is_output) {
        std::copy_n(from, width, out);
      } else {
        // Who reads it reads the whole's row.
        at[instruction.result] = from;
      }
    }
  }

  int inputs_ = 0;
  std::vector<PackedInstruction> instructions_;
  std::vector<int> joined_;
  // By value: the output that it is, -1 for none.
  std::vector<int> output_of_;
  std::vector<Output> outputs_;
  // There are parts or joins, for which a row is a row of the tensors.
  bool has_rows_ = false;
  // Theirs where they count it from the front, and whether they differ.
  int64_t axis_ = -1;
  bool has_axes_ = false;
  const StepChain chain_;
};

}  // namespace

std::unique_ptr<Kernel> MakeElementKernel(const ElementProgram& program,
                                          StepChain chain) {
  return std::make_unique<ElementKernel>(program, std::move(chain));
}

}  // namespace optfarm::runtime
