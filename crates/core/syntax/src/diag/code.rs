//! THE list of codes. A code is a published thing: a number that never changes its meaning, a name, a page in `docs/codes/`.
//!
//! Ranges: 00xx lexing and parsing, 01xx module and directives, 02xx instructions and modifiers, 03xx operands and types,
//! 04xx names and scopes, 05xx functions, calls and parameters, 06xx availability (version and target), 07xx limits,
//! 08xx linking, 09xx lints (`W`).

use super::Severity;

/// What the list knows of a code.
#[derive(Clone, Copy, Debug)]
pub struct CodeInfo {
    /// `E0303` or `W0901`.
    pub number: &'static str,
    /// `unknown-modifier`: for `-W`, `-D`, `-A`.
    pub name: &'static str,
    /// Severity unless changed.
    pub severity: Severity,
    /// One sentence.
    pub summary: &'static str,
}

macro_rules! codes {
    ($($variant:ident = $number:literal, $name:literal, $severity:ident, $summary:literal;)*) => {
        /// A published code of a diagnostic.
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
    UnexpectedCharacter = "E0001", "unexpected-character", Error, "A character that PTX has no use for.";
    Syntax = "E0002", "syntax", Error, "Something else was expected here.";
    MissingSemicolon = "E0003", "missing-semicolon", Error, "A statement does not end in `;`.";
    BadLiteral = "E0004", "bad-literal", Error, "A number is not written as PTX writes numbers.";
    Unclosed = "E0005", "unclosed", Error, "A bracket, brace, parenthesis, comment or string is never closed.";
    ModuleHead = "E0006", "module-head", Error, "A module does not begin with `.version` and `.target`.";
    WordOrder = "E0007", "word-order", Error, "A word of a declaration stands in the wrong place.";
    TooDeep = "E0008", "too-deep", Error, "Blocks, parentheses or braces are nested too deeply.";
    TooLarge = "E0009", "too-large", Error, "The file is too large.";
    LiteralWraps = "W0010", "literal-wraps", Warning, "An integer literal does not fit 64 bits and loses its upper bits.";
    UnknownDirective = "E0101", "unknown-directive", Error, "A directive that PTX does not have.";
    UnknownVersion = "E0104", "unknown-version", Error, "A PTX ISA version that was never published.";
    UnknownTarget = "E0105", "unknown-target", Error, "A target architecture that does not exist.";
    TargetOption = "E0106", "target-option", Error, "An option of `.target` that does not exist, does not fit the target, or contradicts another.";
    AddressSize = "E0108", "address-size", Error, "`.address_size` takes 32 or 64.";
    DuplicateFile = "E0110", "duplicate-file", Error, "Two `.file` directives have one index.";
    DirectiveConflict = "E0111", "directive-conflict", Error, "Two directives of a function that exclude each other, or one that needs another.";
    DirectiveValue = "E0112", "directive-value", Error, "A value that the directive does not take.";
    VariableSpace = "E0120", "variable-space", Error, "A variable in a state space that it cannot be declared in here.";
    VariableType = "E0121", "variable-type", Error, "A variable of a type that cannot be declared here.";
    VectorDeclaration = "E0122", "vector-declaration", Error, "A vector type that does not exist.";
    Alignment = "E0123", "alignment", Error, "An alignment that is no power of two, or too large.";
    ArrayExtent = "E0124", "array-extent", Error, "An array without size, or with a size that cannot be.";
    InitializerNotAllowed = "E0125", "initializer-not-allowed", Error, "A variable that cannot have an initial value.";
    InitializerType = "E0126", "initializer-type", Error, "An initial value of another type than the variable.";
    InitializerCount = "E0127", "initializer-count", Error, "More initial values than elements.";
    InitializerSymbol = "E0128", "initializer-symbol", Error, "A name whose address cannot be an initial value here.";
    Attribute = "E0129", "attribute", Error, "An attribute that the variable or function cannot have.";
    Removed = "E0130", "removed", Error, "A feature that was removed in an earlier version of PTX.";
    ConstantExpression = "E0131", "constant-expression", Error, "An expression that has no constant value.";
    VariableLinkage = "E0132", "variable-linkage", Error, "A linkage that the variable cannot have.";
    RegisterFamily = "E0133", "register-family", Error, "A numbered family of names with a count that cannot be.";
    UnknownInstruction = "E0201", "unknown-instruction", Error, "An instruction that PTX does not have.";
    UnknownModifier = "E0202", "unknown-modifier", Error, "A modifier that PTX does not have anywhere.";
    WrongModifier = "E0203", "wrong-modifier", Error, "A modifier that the instruction does not take, or not together with the others.";
    MissingModifier = "E0204", "missing-modifier", Error, "A modifier that the instruction needs is missing.";
    InstructionType = "E0205", "instruction-type", Error, "A type that the instruction does not take.";
    MissingType = "E0206", "missing-type", Error, "The instruction has no type.";
    ModifierRule = "E0207", "modifier-rule", Error, "Modifiers that exclude each other or need each other.";
    OperandCount = "E0301", "operand-count", Error, "Too few or too many operands.";
    OperandType = "E0302", "operand-type", Error, "A register of another type than the instruction reads or writes.";
    OperandWidth = "E0303", "operand-width", Error, "A register of another width than the instruction reads or writes.";
    DestinationRegister = "E0304", "destination-register", Error, "A destination that is no register.";
    OperandKind = "E0305", "operand-kind", Error, "An operand of another kind than the instruction takes there.";
    MissingBrackets = "E0306", "missing-brackets", Error, "An address without brackets, or brackets where no address is wanted.";
    VectorSize = "E0307", "vector-size", Error, "A vector with another number of elements than the instruction moves.";
    AddressSpace = "E0308", "address-space", Error, "A variable in another state space than the instruction accesses.";
    AddressType = "E0309", "address-type", Error, "An address in a register that cannot hold one.";
    ConstantType = "E0310", "constant-type", Error, "A constant of another type than the operand.";
    GuardPredicate = "E0311", "guard-predicate", Error, "A guard that is no predicate register.";
    SpecialRegister = "E0312", "special-register", Error, "A special register where the instruction takes none.";
    Discard = "E0313", "discard", Error, "`_` where a result cannot be discarded.";
    Negation = "E0314", "negation", Error, "`!` or `-` before an operand that cannot be negated.";
    ConstantRange = "E0315", "constant-range", Error, "A constant outside of the operand's range.";
    ConstantAddress = "E0316", "constant-address", Error, "A constant address in a space where addresses cannot be known.";
    VectorSelector = "E0317", "vector-selector", Error, "A selector that is no element or part of the register.";
    NarrowAddress = "E0318", "narrow-address", Error, "A 32-bit address in a module with 64-bit addresses.";
    OperandForm = "E0319", "operand-form", Error, "Operands that do not fit together for this instruction.";
    UnknownRegister = "E0401", "unknown-register", Error, "A register that is not declared.";
    UnknownLabel = "E0402", "unknown-label", Error, "A label that does not exist, or not in this block.";
    UnknownFunction = "E0403", "unknown-function", Error, "A function that is not declared.";
    UnknownVariable = "E0404", "unknown-variable", Error, "A variable or parameter that is not declared.";
    Duplicate = "E0405", "duplicate", Error, "A name that is declared twice in one scope.";
    UsedBeforeDeclaration = "E0406", "used-before-declaration", Error, "A name that is declared only further down.";
    Redeclared = "E0407", "redeclared", Error, "A declaration that differs from an earlier one of the same name.";
    PrototypeMismatch = "E0501", "prototype-mismatch", Error, "Two declarations of a function that do not agree.";
    FunctionRedefined = "E0502", "function-redefined", Error, "A function that is declared or defined again after its definition.";
    FunctionLinkage = "E0503", "function-linkage", Error, "Declarations of a function with linkages that do not go together.";
    FormalName = "E0504", "formal-name", Error, "A formal without a name.";
    FormalSpace = "E0505", "formal-space", Error, "A formal in a state space that it cannot be in.";
    FormalType = "E0506", "formal-type", Error, "A formal of a type that it cannot have.";
    FormalAlignment = "E0507", "formal-alignment", Error, "A parameter with an alignment that parameters cannot have.";
    UnsizedFormal = "E0508", "unsized-formal", Error, "An array formal without size where none can be.";
    ReturnCount = "E0509", "return-count", Error, "More than one return parameter.";
    Noreturn = "E0510", "noreturn", Error, "`.noreturn` on a function that returns something.";
    AbiPreserve = "E0511", "abi-preserve", Error, "`.abi_preserve` or `.abi_preserve_control` with a number that no target has, or twice.";
    PointerAttribute = "E0512", "pointer-attribute", Error, "`.ptr` on something that is no kernel parameter.";
    NarrowFormal = "E0513", "narrow-formal", Error, "A formal narrower than 32 bits that the ABI cannot pass.";
    HeaderOrder = "E0514", "header-order", Error, "Directives of a header in another order than the manual's.";
    ParameterPlace = "E0515", "parameter-place", Error, "A `.param` variable where this version declares none.";
    CallCount = "E0520", "call-count", Error, "A call with too few or too many arguments or results.";
    CallType = "E0521", "call-type", Error, "An argument or result of another type or size than the formal.";
    CallAlignment = "E0522", "call-alignment", Error, "An argument or result with another alignment than the formal.";
    CallArgument = "E0523", "call-argument", Error, "Something that cannot be passed or cannot receive a result.";
    CallConstant = "E0524", "call-constant", Error, "A constant that the formal's type cannot represent.";
    CallKernel = "E0525", "call-kernel", Error, "A call of a kernel.";
    CallTable = "E0526", "call-table", Error, "A call with the wrong kind of table, or none.";
    CallSequence = "E0527", "call-sequence", Error, "Argument stores or result loads that are not next to their call.";
    PredicatedParameter = "E0528", "predicated-parameter", Error, "A guarded store of an argument or load of a result.";
    StrayResult = "E0529", "stray-result", Error, "A load of a call's result that no earlier call has made.";
    ParameterWrite = "E0540", "parameter-write", Error, "A store into an input parameter.";
    ParameterRead = "E0541", "parameter-read", Error, "A load from a return parameter.";
    ParameterAddress = "E0542", "parameter-address", Error, "The address of a `.param` variable that has none.";
    ParameterQualifier = "E0543", "parameter-qualifier", Error, "`::entry` or `::func` on a parameter of the other kind.";
    ParameterAlignment = "E0544", "parameter-alignment", Error, "An access to a parameter that is not aligned to its size.";
    ParameterWindow = "E0545", "parameter-window", Error, "An access through the address of a parameter in a space where it does not lie.";
    Recursion = "E0550", "recursion", Error, "Recursion without a stack.";
    NeedsAbi = "E0551", "needs-abi", Error, "Something that needs the stack-based ABI in a module that has switched it off.";
    Alias = "E0552", "alias", Error, "An alias of something that cannot have one.";
    ConstantPointer = "E0553", "constant-pointer", Error, "`cvta.const` in a module whose kernels take pointers to constant memory.";
    TooNew = "E0601", "too-new", Error, "Something that needs a later `.version` or a later `.target`.";
    SpecificTarget = "E0602", "specific-target", Error, "Something that only architecture- or family-specific targets have.";
    VersionTarget = "E0603", "version-target", Error, "A target that the module's version does not know yet.";
    ArchTooOld = "E0604", "arch-too-old", Error, "The module is for a later architecture than the one it is checked for.";
    NoLongerSupported = "E0605", "no-longer-supported", Error, "Something that later versions or targets do not have any more.";
    KernelParameterSpace = "E0701", "kernel-parameter-space", Error, "A kernel with more bytes of parameters than fit.";
    SharedSpace = "E0702", "shared-space", Error, "A kernel with more static shared memory than there is.";
    ConstantSpace = "E0703", "constant-space", Error, "More constant memory than there is.";
    DeclarationTooLarge = "E0704", "declaration-too-large", Error, "A declaration too large for margay and for any machine.";
    UnresolvedExtern = "E0801", "unresolved-extern", Error, "A function that is declared, never defined, and needed by whole-program compilation.";
    ModifierOrder = "W0901", "modifier-order", Warning, "Modifiers in another order than the manual's.";
    MisalignedAccess = "W0902", "misaligned-access", Warning, "A constant address that is not aligned as the access needs.";
    TruncatedConstant = "W0903", "truncated-constant", Warning, "A constant with more bits than the operand keeps.";
    NeverWritten = "W0904", "never-written", Warning, "A register that is read and never written.";
    DivergentBarrier = "W0905", "divergent-barrier", Warning, "A barrier that only some threads of a warp may reach.";
    OutOfBounds = "W0906", "out-of-bounds", Warning, "A constant address outside of the variable.";
    ParameterOverread = "W0907", "parameter-overread", Warning, "A read past the end of a parameter.";
    IgnoredDirective = "W0908", "ignored-directive", Warning, "A directive that has no effect here.";
    UnknownPragma = "W0909", "unknown-pragma", Warning, "A pragma that nothing understands.";
}
