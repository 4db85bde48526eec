//! THE list of codes. Codes are published: each has a number whose meaning never changes, a name, and a page in `docs/codes/`.
//!
//! Ranges: 00xx lexing and parsing, 01xx module and directives, 02xx instructions and modifiers, 03xx operands and types,
//! 04xx names and scopes, 05xx functions, calls and parameters, 06xx availability (version and target), 07xx limits,
//! 08xx linking, 09xx lints (`W`).

use super::Severity;

/// An entry of the list of codes.
#[derive(Clone, Copy, Debug)]
pub struct CodeInfo {
    /// `E0303` or `W0901`.
    pub number: &'static str,
    /// The name, such as `unknown-modifier`, for `-W`, `-D` and `-A`.
    pub name: &'static str,
    /// The default severity.
    pub severity: Severity,
    /// One sentence.
    pub summary: &'static str,
}

macro_rules! codes {
    ($($variant:ident = $number:literal, $name:literal, $severity:ident, $summary:literal;)*) => {
        /// The published code of a diagnostic.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Code { $(#[doc = $summary] $variant,)* }

        impl Code {
            /// Every code, in order of number.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code's entry.
            pub const fn info(self) -> CodeInfo {
                match self { $(Code::$variant => CodeInfo { number: $number, name: $name, severity: Severity::$severity, summary: $summary },)* }
            }

            /// The code with that number or name.
            pub fn find(text: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|c| c.info().number.eq_ignore_ascii_case(text) || c.info().name == text)
            }
        }
    };
}

codes! {
    UnexpectedCharacter = "E0001", "unexpected-character", Error, "The character is not part of PTX.";
    Syntax = "E0002", "syntax", Error, "The grammar of PTX expects something else here.";
    MissingSemicolon = "E0003", "missing-semicolon", Error, "A statement does not end in `;`.";
    BadLiteral = "E0004", "bad-literal", Error, "A numeric literal is malformed.";
    Unclosed = "E0005", "unclosed", Error, "A bracket, brace, parenthesis, comment or string is never closed.";
    ModuleHead = "E0006", "module-head", Error, "The module does not begin with `.version`, `.target` and an optional `.address_size`, in this order.";
    WordOrder = "E0007", "word-order", Error, "The parts of a declaration are in the wrong order.";
    TooDeep = "E0008", "too-deep", Error, "Blocks, parentheses or braces are nested too deeply.";
    TooLarge = "E0009", "too-large", Error, "The file is too large.";
    LiteralWraps = "W0010", "literal-wraps", Warning, "An integer literal does not fit in 64 bits and loses its upper bits.";
    UnknownDirective = "E0101", "unknown-directive", Error, "The directive does not exist.";
    UnknownVersion = "E0104", "unknown-version", Error, "The PTX ISA version was never published.";
    UnknownTarget = "E0105", "unknown-target", Error, "The target architecture does not exist.";
    TargetOption = "E0106", "target-option", Error, "A `.target` option does not exist, does not apply to the target, or contradicts another option.";
    AddressSize = "E0108", "address-size", Error, "The argument of `.address_size` is neither 32 nor 64.";
    DuplicateFile = "E0110", "duplicate-file", Error, "Two `.file` directives use the same index.";
    DirectiveConflict = "E0111", "directive-conflict", Error, "Two directives of a function exclude each other, or one requires another that is missing.";
    DirectiveValue = "E0112", "directive-value", Error, "The directive does not accept this value.";
    VariableSpace = "E0120", "variable-space", Error, "The variable cannot be declared in this state space here.";
    VariableType = "E0121", "variable-type", Error, "The variable cannot have this type here.";
    VectorDeclaration = "E0122", "vector-declaration", Error, "The vector type does not exist.";
    Alignment = "E0123", "alignment", Error, "The alignment is not a power of two, or is too large.";
    ArrayExtent = "E0124", "array-extent", Error, "The array has no size or an invalid size.";
    InitializerNotAllowed = "E0125", "initializer-not-allowed", Error, "The variable cannot have an initializer.";
    InitializerType = "E0126", "initializer-type", Error, "The type of an initial value does not match the variable.";
    InitializerCount = "E0127", "initializer-count", Error, "The initializer has more values than the variable has elements.";
    InitializerSymbol = "E0128", "initializer-symbol", Error, "The address of this symbol cannot be used in an initializer here.";
    Attribute = "E0129", "attribute", Error, "The attribute does not apply to this variable or function.";
    Removed = "E0130", "removed", Error, "The feature was removed from PTX.";
    ConstantExpression = "E0131", "constant-expression", Error, "The expression is not a constant expression.";
    VariableLinkage = "E0132", "variable-linkage", Error, "The variable cannot have this linkage.";
    RegisterFamily = "E0133", "register-family", Error, "The count of a parameterized variable name is invalid.";
    UnknownInstruction = "E0201", "unknown-instruction", Error, "The instruction does not exist.";
    UnknownModifier = "E0202", "unknown-modifier", Error, "No instruction has this modifier.";
    WrongModifier = "E0203", "wrong-modifier", Error, "The instruction does not accept this modifier, or not in combination with the others.";
    MissingModifier = "E0204", "missing-modifier", Error, "A required modifier is missing.";
    InstructionType = "E0205", "instruction-type", Error, "The instruction does not support this type.";
    MissingType = "E0206", "missing-type", Error, "The instruction has no type.";
    ModifierRule = "E0207", "modifier-rule", Error, "Modifiers exclude each other, or one requires another.";
    OperandCount = "E0301", "operand-count", Error, "The instruction has too few or too many operands.";
    OperandType = "E0302", "operand-type", Error, "The type of a register does not match the instruction.";
    OperandWidth = "E0303", "operand-width", Error, "The width of a register does not match the instruction.";
    DestinationRegister = "E0304", "destination-register", Error, "The destination operand is not a register.";
    OperandKind = "E0305", "operand-kind", Error, "The instruction does not accept this kind of operand here.";
    MissingBrackets = "E0306", "missing-brackets", Error, "An address is not in brackets, or an operand in brackets is not an address.";
    VectorSize = "E0307", "vector-size", Error, "The number of vector elements does not match the instruction.";
    AddressSpace = "E0308", "address-space", Error, "The variable is in a different state space than the instruction accesses.";
    AddressType = "E0309", "address-type", Error, "The register that holds an address has the wrong type.";
    ConstantType = "E0310", "constant-type", Error, "The type of a constant does not match the operand.";
    GuardPredicate = "E0311", "guard-predicate", Error, "The guard is not a predicate register.";
    SpecialRegister = "E0312", "special-register", Error, "The instruction cannot read or write a special register.";
    Discard = "E0313", "discard", Error, "The result cannot be discarded with `_`.";
    Negation = "E0314", "negation", Error, "The operand cannot be negated.";
    ConstantRange = "E0315", "constant-range", Error, "The constant is out of the operand's range.";
    ConstantAddress = "E0316", "constant-address", Error, "An absolute address is used in a state space whose layout is unknown.";
    VectorSelector = "E0317", "vector-selector", Error, "The selector does not name an element or part of the register.";
    NarrowAddress = "E0318", "narrow-address", Error, "A 32-bit address is used in a module with 64-bit addresses.";
    OperandForm = "E0319", "operand-form", Error, "The instruction does not accept this combination of operands.";
    UnknownRegister = "E0401", "unknown-register", Error, "The register is not declared.";
    UnknownLabel = "E0402", "unknown-label", Error, "The label does not exist or is not visible from this block.";
    UnknownFunction = "E0403", "unknown-function", Error, "The function is not declared.";
    UnknownVariable = "E0404", "unknown-variable", Error, "The variable or parameter is not declared.";
    Duplicate = "E0405", "duplicate", Error, "The name is declared twice in one scope.";
    UsedBeforeDeclaration = "E0406", "used-before-declaration", Error, "The name is used before its declaration.";
    Redeclared = "E0407", "redeclared", Error, "The declaration differs from an earlier one of the same name.";
    PrototypeMismatch = "E0501", "prototype-mismatch", Error, "Two declarations of a function have different signatures.";
    FunctionRedefined = "E0502", "function-redefined", Error, "The function is declared or defined again after its definition.";
    FunctionLinkage = "E0503", "function-linkage", Error, "The declarations of a function have incompatible linkage.";
    FormalName = "E0504", "formal-name", Error, "The parameter has no name.";
    FormalSpace = "E0505", "formal-space", Error, "The parameter cannot be in this state space.";
    FormalType = "E0506", "formal-type", Error, "The parameter cannot have this type.";
    FormalAlignment = "E0507", "formal-alignment", Error, "The parameter cannot have this alignment.";
    UnsizedFormal = "E0508", "unsized-formal", Error, "Only the last input parameter may be an unsized array.";
    ReturnCount = "E0509", "return-count", Error, "The function has more than one return parameter.";
    Noreturn = "E0510", "noreturn", Error, "A `.noreturn` function has a return parameter.";
    AbiPreserve = "E0511", "abi-preserve", Error, "`.abi_preserve` or `.abi_preserve_control` is repeated or exceeds the limit of every target.";
    PointerAttribute = "E0512", "pointer-attribute", Error, "`.ptr` is used on something other than a kernel parameter.";
    NarrowFormal = "E0513", "narrow-formal", Error, "The parameter is narrower than 32 bits, which the ABI cannot pass.";
    HeaderOrder = "E0514", "header-order", Error, "The directives of a function header are not in the manual's order.";
    ParameterPlace = "E0515", "parameter-place", Error, "This PTX version does not allow `.param` variables here.";
    CallCount = "E0520", "call-count", Error, "The call has too few or too many arguments or results.";
    CallType = "E0521", "call-type", Error, "The type or size of an argument or result does not match the parameter.";
    CallAlignment = "E0522", "call-alignment", Error, "The alignment of an argument or result does not match the parameter.";
    CallArgument = "E0523", "call-argument", Error, "The operand cannot be passed as an argument or receive a result.";
    CallConstant = "E0524", "call-constant", Error, "The parameter's type cannot represent this constant.";
    CallKernel = "E0525", "call-kernel", Error, "A kernel is called like a function.";
    CallTable = "E0526", "call-table", Error, "The call requires a prototype, or a list of functions that take it.";
    CallSequence = "E0527", "call-sequence", Error, "Argument stores or result loads are not adjacent to their call.";
    PredicatedParameter = "E0528", "predicated-parameter", Error, "An argument store or result load is predicated.";
    StrayResult = "E0529", "stray-result", Error, "A result is loaded that no preceding call has produced.";
    ParameterWrite = "E0540", "parameter-write", Error, "An input parameter is written.";
    ParameterRead = "E0541", "parameter-read", Error, "A return parameter is read.";
    ParameterAddress = "E0542", "parameter-address", Error, "The address of this `.param` variable cannot be taken.";
    ParameterQualifier = "E0543", "parameter-qualifier", Error, "`::entry` or `::func` does not match the kind of parameter.";
    ParameterAlignment = "E0544", "parameter-alignment", Error, "An access to a parameter is not aligned to its size.";
    ParameterWindow = "E0545", "parameter-window", Error, "A parameter's address is used in the wrong state space.";
    Recursion = "E0550", "recursion", Error, "The function is recursive, but the module has no stack.";
    NeedsAbi = "E0551", "needs-abi", Error, "The feature requires the stack-based ABI, which the module disables.";
    Alias = "E0552", "alias", Error, "The alias is not a valid alias of a function.";
    ConstantPointer = "E0553", "constant-pointer", Error, "`cvta.const` is used in a module whose kernels take pointers to constant memory.";
    TooNew = "E0601", "too-new", Error, "The feature requires a later `.version` or `.target`.";
    SpecificTarget = "E0602", "specific-target", Error, "The feature requires an architecture-specific or family-specific target.";
    VersionTarget = "E0603", "version-target", Error, "The module's `.version` does not support its `.target`.";
    ArchTooOld = "E0604", "arch-too-old", Error, "The module does not run on the architecture given by `--arch`.";
    NoLongerSupported = "E0605", "no-longer-supported", Error, "Later versions or targets no longer support the feature.";
    KernelParameterSpace = "E0701", "kernel-parameter-space", Error, "The kernel's parameters exceed the size limit.";
    SharedSpace = "E0702", "shared-space", Error, "The kernel's static shared memory exceeds the limit.";
    ConstantSpace = "E0703", "constant-space", Error, "The module's constant memory exceeds the limit.";
    DeclarationTooLarge = "E0704", "declaration-too-large", Error, "The declaration is too large for margay and for any device.";
    UnresolvedExtern = "E0801", "unresolved-extern", Error, "The function is declared but never defined, which whole-program compilation requires.";
    ModifierOrder = "W0901", "modifier-order", Warning, "The modifiers are not in the manual's order.";
    MisalignedAccess = "W0902", "misaligned-access", Warning, "A constant address is not aligned as the access requires.";
    TruncatedConstant = "W0903", "truncated-constant", Warning, "The constant does not fit in the operand and is truncated.";
    NeverWritten = "W0904", "never-written", Warning, "The register is read but never written.";
    DivergentBarrier = "W0905", "divergent-barrier", Warning, "The barrier may not be reached by all threads of a warp.";
    OutOfBounds = "W0906", "out-of-bounds", Warning, "A constant address is outside the variable.";
    ParameterOverread = "W0907", "parameter-overread", Warning, "A load reads past the end of a parameter.";
    IgnoredDirective = "W0908", "ignored-directive", Warning, "The directive has no effect here.";
    UnknownPragma = "W0909", "unknown-pragma", Warning, "The pragma is unknown and ignored.";
}
