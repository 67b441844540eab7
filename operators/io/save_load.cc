// save, load, save_combine, load_combine: variables to and from files, in Fluid's byte format.
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/serialize.h"
#include "operators/common/convert.h"

namespace penstock {
namespace {

constexpr char kSaveDoc[] = R"(
Writes X, dense or selected rows, to file_path, and creates missing folders. The file is replaced atomically,
so a reader sees either the old value or the new one. With save_as_fp16 tensors are written in half precision,
rounded to nearest.)";

constexpr char kLoadDoc[] = R"(
Out gets the value in the file at file_path. If Out is declared with a type, the file must hold that type;
with load_as_fp16, tensors are turned into half precision first.
With seek >= 0, Out is a slice of it: the elements from number `seek` on that fill `shape`.)";

constexpr char kSaveCombineDoc[] = R"(
Writes all X to one file, one after the other in the order of the arguments.)";

constexpr char kLoadCombineDoc[] = R"(
Out[i] gets the i-th value in the file at file_path, which must hold as many as there are outputs.)";

Status Unsupported(const KernelSetup& k, const char* attr) {
  return Unimplemented("E-op-unimplemented", k.op().type(), ": attribute ", attr, " is not supported");
}

// fluid.io joins a folder and the variable's name. A model's names are data: one such as "../../x" must not
// lead out of the folder.
Status RequireInFolder(const KernelSetup& k, const std::vector<Argument>& variables,
                       const std::string& path) {
  for (const Argument& variable : variables) {
    if (!LeavesFolder(variable.name) || !path.ends_with(variable.name)) continue;
    return InvalidArgument("E-file-outside", k.op().type(), ": the file of variable ", Quote(variable.name),
                           " (", path, ") is outside the folder of the model; rename the variable");
  }
  return OkStatus();
}

// -1 if an extent is unknown, or if there are more elements than can be counted.
std::int64_t CountOf(const Shape& shape) {
  std::int64_t count = 1;
  for (const Dim extent : shape.dims()) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return -1;
  }
  return count;
}

// The tensor in half precision; one of a type that is no number stays as it is.
Tensor AsFp16(const Tensor& tensor) {
  const Converter convert = ConverterOf(tensor.dtype(), DType::kFp16);
  if (convert == nullptr) return tensor;
  Tensor half(DType::kFp16, tensor.shape());
  convert(tensor, half);
  half.ShareLod(tensor);
  return half;
}

class SaveKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    variables_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    path_ = k.Attr<std::string>("file_path");
    overwrite_ = k.Attr<bool>("overwrite");
    as_fp16_ = k.Attr<bool>("save_as_fp16");
    PENSTOCK_RETURN_IF_ERROR(RequireInFolder(k, variables_, path_));
    if (k.op().GetOr("save_to_memory", false)) return Unsupported(k, "save_to_memory");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::string bytes;
    for (const Argument& x : variables_) {
      const Variable& variable = k.Var(x);
      if (const Tensor* tensor = variable.If<Tensor>(); tensor != nullptr && tensor->initialized()) {
        AppendTensor(bytes, as_fp16_ ? AsFp16(*tensor) : *tensor);
      } else if (const SelectedRows* rows = variable.If<SelectedRows>();
                 rows != nullptr && rows->value.initialized()) {
        AppendSelectedRows(bytes, *rows);
      } else {
        return FailedPrecondition("E-save-empty", "save: ", x.name,
                                  " has no value yet; run the startup program first");
      }
    }
    std::error_code failure;
    const std::filesystem::path path(path_);
    if (!overwrite_ && std::filesystem::exists(path, failure)) {
      return FailedPrecondition("E-save-exists", "save: ", path_,
                                " exists, and attribute overwrite is false");
    }
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
    return WriteFile(path_, bytes);  // says why if the folder could not be made
  }

 private:
  std::vector<Argument> variables_;
  std::string path_;
  bool overwrite_ = true, as_fp16_ = false;
};

class LoadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    variables_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    path_ = k.Attr<std::string>("file_path");
    as_fp16_ = k.Attr<bool>("load_as_fp16");
    PENSTOCK_RETURN_IF_ERROR(RequireInFolder(k, variables_, path_));
    if (k.op().GetOr("model_from_memory", false)) return Unsupported(k, "model_from_memory");
    seek_ = k.op().GetOr("seek", std::int64_t{-1});
    slice_ = Shape(k.op().GetOr("shape", std::vector<std::int64_t>()));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path_));
    std::string_view rest = bytes;
    for (const Argument& out : variables_) {
      Result<Variable> value = ReadValue(out, rest);
      if (!value.ok()) return std::move(value).status().In(StrCat("load: ", path_, ": ", out.name));
      if (seek_ >= 0) PENSTOCK_RETURN_IF_ERROR(TakeSlice(*value));
      if (const Tensor* read = value->If<Tensor>(); as_fp16_ && read != nullptr) {
        Tensor half = AsFp16(*read);
        value->As<Tensor>() = std::move(half);
      }
      PENSTOCK_RETURN_IF_ERROR(Put(k.Var(out), out, *std::move(value)));
    }
    if (rest.empty()) return OkStatus();
    return DataLoss("E-load-rest", "load: ", path_, " holds ", rest.size(), " bytes more than its ",
                    variables_.size(), " variables");
  }

 private:
  static Result<Variable> ReadValue(const Argument& out, std::string_view& rest) {
    Variable value;
    if (out.kind == VarKind::kSelectedRows) {
      PENSTOCK_ASSIGN_OR_RETURN(value.As<SelectedRows>(), ReadSelectedRows(rest));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(value.As<Tensor>(), ReadTensor(rest));
    }
    return value;
  }

  Status TakeSlice(Variable& value) const {
    const Tensor* whole = value.If<Tensor>();
    if (whole == nullptr)
      return InvalidArgument("E-load-slice", "load: a slice of selected rows has no meaning");
    const std::int64_t count = CountOf(slice_);
    if (count < 0 || seek_ > whole->count() || count > whole->count() - seek_) {
      return InvalidArgument("E-load-slice", "load: ", path_, " holds ", whole->count(), " elements; ",
                             slice_, " from element ", seek_, " is not among them");
    }
    Tensor slice(whole->dtype(), slice_);
    const std::size_t begin = static_cast<std::size_t>(seek_) * SizeOf(whole->dtype());
    if (slice.bytes() > 0) std::memcpy(slice.raw(), whole->raw() + begin, slice.bytes());
    value.As<Tensor>() = std::move(slice);
    return OkStatus();
  }

  // Into the buffer that is there if it fits: others may hold views of it.
  static Status Put(Variable& to, const Argument& out, Variable value) {
    const Tensor* tensor = value.If<Tensor>();
    if (tensor == nullptr) {  // rows that the file does not list start as before
      if (const auto* old = to.If<SelectedRows>()) value.As<SelectedRows>().start = old->start;
      to = std::move(value);
      return OkStatus();
    }
    const bool declared = out.shape.rank() > 0;
    if (declared && (tensor->dtype() != out.dtype || !Compatible(tensor->shape(), out.shape))) {
      return InvalidArgument("E-load-type", "load: the file holds ", DTypeName(tensor->dtype()),
                             tensor->shape(), "; ", out.name, " is declared ", DTypeName(out.dtype),
                             out.shape);
    }
    Tensor* old = to.If<Tensor>();
    if (old != nullptr && old->initialized() && old->dtype() == tensor->dtype() &&
        old->shape() == tensor->shape()) {
      old->CopyFrom(*tensor);
      old->set_lod(tensor->lod());
    } else {
      to.As<Tensor>() = *tensor;
    }
    return OkStatus();
  }

  std::vector<Argument> variables_;
  std::string path_;
  bool as_fp16_ = false;
  std::int64_t seek_ = -1;  // the whole value
  Shape slice_;
};

OpDef& FinishSave(OpDef& def) {
  return def.Attr("overwrite", true, "whether a file that is there is replaced")
      .Attr("save_as_fp16", false, "whether tensors are saved in half precision")
      .RequiredAttr("file_path", AttrKind::kString, "the file")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kHost})
      .NoGrad()
      .KernelForAnyType<Cpu, SaveKernel>();
}

OpDef& FinishLoad(OpDef& def) {
  return def.Attr("load_as_fp16", false, "whether tensors become half precision")
      .RequiredAttr("file_path", AttrKind::kString, "the file")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kHost})
      .NoGrad()
      .KernelForAnyType<Cpu, LoadKernel>();
}

}  // namespace

void RegisterSaveLoad(OpRegistry& ops) {
  FinishSave(ops.Add("save")
                 .Doc("A variable to a file.", kSaveDoc)
                 .Input("X", "what is saved", AnyType(), TensorOrRows())
                 .Output("kLookupTablePath", "of Fluid's servers; not used", AnyType(), Optional()));
  FinishLoad(ops.Add("load")
                 .Doc("A variable from a file.", kLoadDoc)
                 .Output("Out", "what is loaded", AnyType(), TensorOrRows()))
      .Attr("seek", std::int64_t{-1}, "the first element of a slice; -1: the whole value")
      .Attr("shape", std::vector<std::int64_t>(), "of the slice");
  FinishSave(ops.Add("save_combine")
                 .Doc("Variables to one file.", kSaveCombineDoc)
                 .Input("X", "what is saved", AnyType(), Repeated() | TensorOrRows())
                 .Output("Y", "the bytes, for save_to_memory; not used", AnyType(), Optional()))
      .Attr("save_to_memory", false, "must be false");
  FinishLoad(ops.Add("load_combine")
                 .Doc("Variables from one file.", kLoadCombineDoc)
                 .Output("Out", "what is loaded", AnyType(), Repeated() | TensorOrRows()))
      .Attr("model_from_memory", false, "must be false");
}

}  // namespace penstock
