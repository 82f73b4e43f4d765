//! The commonest words of languages, by which short sentences are told apart. What the interface does not have stands here,
//! too, so that a sentence of a neighbour is not taken for one of ours.

/// Languages by their codes, and words separated by blanks. A word counts for each language that has it, the less the more
/// of them there are, where those that the interface does not have are half a language. What stands between apostrophes is
/// a word.
pub(super) const WORDS: [(&str, &str); 28] = [
    (
        "en",
        "the to and a of you i it is in that for on we he she they be this with are have not do was me my your what all \
            but so no yes can just like know don s t m re ve ll am been will would could should were had has did does his \
            her him our us them their there here where when why how who which if or as at by from an about up out get go \
            going come see think want need please thank thanks hello hi good well now then than some any more very much \
            time day today tomorrow yesterday tonight morning night one two really right let tell say said make made take \
            too also only over again never always last next first after before because into down back off",
    ),
    (
        "es",
        "el la los las un una unos unas de del a al y o que en no se lo es por con para su sus mi mis tu tus te me le nos \
            les como pero más muy ya sí si está están estoy estamos estás son soy eres somos era fue ser hay hace hacer tengo \
            tiene tienes tenemos qué quién cómo dónde cuándo cuánto cuál eso esto este esta ese esa aquí allí ahora hoy mañana \
            ayer siempre nunca también todo toda todos nada algo bien bueno buenos buena buenas hola gracias favor quiero \
            quiere quieres puedo puede puedes vamos voy va ver porque cuando donde sin sobre entre hasta desde yo él ella \
            nosotros ellos usted ustedes días noches casa mucho mucha poco me gusta hora sólo solo así",
    ),
    (
        "fr",
        "le la les l un une des de d du à au aux et ou que qu en ne n pas ce c s se j je tu il elle on nous vous ils elles \
            est sont suis es sommes êtes était ai as a avons avez ont être avoir fait faire fais va vais vas allons allez mon ma \
            mes ton ta tes son sa ses notre votre leur ça cela cette cet ces qui quoi quel quelle où quand comment pourquoi \
            combien dans sur pour par avec sans mais plus très bien bon bonne bonjour bonsoir merci oui non si tout tous toute \
            rien ici là aujourd hui demain hier maintenant toujours jamais aussi encore peu beaucoup peux peut pouvez voudrais \
            veux veut voulez sais m t y lui moi toi eux chez comme parce salut plaît soir matin jour temps heure faut",
    ),
    (
        "de",
        "der die das den dem des ein eine einen einem einer eines und oder aber ich du er sie es wir ihr mich mir dich dir \
            ihn ihm uns euch ihnen mein meine meinen dein deine sein seine unser ist sind bin bist war waren sein haben habe hast \
            hat hatte hätte wird werden werde wurde kann kannst können muss müssen will wollen möchte soll nicht kein keine auch \
            noch schon nur sehr so wie was wer wo wann warum woher wohin welche hier da dort jetzt heute morgen gestern immer \
            nie wieder mit von zu zum zur in im an am auf aus bei für über um nach vor bis durch gegen ohne unter ja nein doch \
            mal gut bitte danke hallo guten tag abend nacht uhr gern gerne mehr viel etwas nichts alles wenn weil dass ob als dann \
            macht geht gibt",
    ),
    (
        "it",
        "il lo la i gli le l un uno una di del dello della dei delle a al alla ai e o che in nel nella non si mi ti ci vi lo \
            ne è sono sei siamo siete era ho hai ha abbiamo avete hanno essere avere fare fa fatto vado va andiamo vorrei voglio \
            vuoi vuole posso puoi può mio mia miei tuo tua suo sua nostro questo questa questi quello quella cosa chi come dove \
            dov quando quanto perché qui qua lì oggi domani ieri sempre mai anche ancora più molto poco bene buono buona buon \
            buongiorno ciao grazie prego sì no con per da dal dalla su tra fra se ma io tu lui lei noi voi loro tutto tutti \
            niente ora adesso solo già così stato stata stati c d sera giorno notte mattina favore sta sto stai",
    ),
    (
        "pt",
        "o a os as um uma uns umas de do da dos das e ou que em no na nos nas não se é são sou és somos era foi ser estar está \
            estou estão tem tenho temos ter há faz fazer vou vai vamos quero queria quer pode posso podes meu minha meus minhas \
            teu tua seu sua nosso isto isso este esta esse essa aquele eu tu ele ela nós você vocês eles elas me te lhe com para \
            por pelo pela sem sobre entre até mas mais muito muita pouco bem bom boa bons boas dia tarde noite olá obrigado \
            obrigada favor sim hoje amanhã ontem sempre nunca também ainda agora aqui ali lá onde quando quanto como porque \
            quem qual à ao aos às já só tudo nada hora horas fica gosto",
    ),
    (
        "pl",
        "nie to się w na i z do że jest co tak jak o ale mnie mi ja ty on ona my wy oni ci cię go jej ich nam was za po od dla \
            przez przy czy gdzie kiedy dlaczego ile kto który która które której tego ten ta te tym tam tu już jeszcze tylko bardzo \
            dobrze dobry dobra dzień dziś dzisiaj jutro wczoraj zawsze nigdy może mogę możesz chcę chcesz proszę poproszę dziękuję \
            cześć jestem jesteś są był była było być mam masz ma mamy będzie będę mój moja moje twój twoja nic coś wszystko teraz \
            potem bo jeśli więc lub albo bez pan pani ze we nas",
    ),
    (
        "nl",
        "de het een en of maar ik je jij u hij zij ze we wij jullie mij me mijn jouw uw zijn haar ons onze hun is ben bent was \
            waren heb hebt heeft hebben had wordt worden kan kun kunt kunnen moet moeten wil wilt willen zal zou niet geen ook nog \
            al wel dan dat dit die deze er hier daar waar wat wie hoe wanneer waarom hoeveel welke van voor met op in aan uit bij \
            naar om over tot door te nu vandaag morgen gisteren altijd nooit weer graag goed goede goedemorgen dag dank bedankt \
            alstublieft alsjeblieft ja nee heel veel meer iets niets alles als omdat ga gaat gaan doe doet doen laat mag zo t",
    ),
    (
        "da",
        "og i jeg det at en den til er som på de med han af for ikke der var mig sig men et har om vi min havde ham hun nu over \
            da fra du ud sin dem os op man hans hvor eller hvad skal selv her alle vil blev kunne ind når være dog noget hvordan \
            hvorfor hvem godt tak goddag meget mange kan ja nej dette koster klokken",
    ),
    (
        "sv",
        "och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då sin nu \
            har inte hans honom skulle hennes där min man ej vid kunde något från ut när efter upp vi dem vara vad över än dig kan \
            hur varför vem mycket tack hej god vill ha mitt ditt detta kostar",
    ),
    (
        "no",
        "og i jeg det at en et den til er som på de med han av ikke der så var meg seg men har om vi min mitt ha hun nå over da \
            ved fra du ut sin dem oss opp man kan hans hvor eller hva skal selv her alle vil bli ble noe når være hvordan hvorfor \
            hvem mye takk hei god dette koster",
    ),
    (
        "fi",
        "ja on ei se että hän minä sinä me te he mikä missä mitä kuka miten miksi milloin olen olet oli ovat mutta kun niin \
            nyt tämä tuo kiitos hyvää hei kyllä haluan paljon",
    ),
    (
        "cs",
        "a je se na to v že s z do i jak ale co pro za by jsem jsi jsou tak už ne ano kde kdy proč kdo mi mě ty já on ona my \
            vy oni jeho její můj moje tady tam dnes zítra včera děkuji prosím dobrý den velmi chci mám má byl bylo být kolik stojí",
    ),
    (
        "sk",
        "a je sa na to v že s z do aj ako ale čo pre za by som si sú tak už nie áno kde kedy prečo kto mi ma ty ja on ona my vy \
            môj moja tu tam dnes zajtra včera ďakujem prosím dobrý deň veľmi chcem mám koľko stojí",
    ),
    (
        "ro",
        "și de la în nu este e un o că cu pe din să se mai sunt eu tu el ea noi voi ei ce cine unde când cum de ce este era am ai \
            are avem foarte bine bună ziua mulțumesc vă rog da acum azi mâine aici acolo meu mea pentru dar sau cât costă",
    ),
    (
        "tr",
        "bir ve bu ne için çok var yok mi mı ben sen o biz siz onlar değil evet hayır nerede nasıl kim zaman kadar gibi daha iyi \
            merhaba teşekkür teşekkürler lütfen bugün yarın şimdi ama ile istiyorum de da",
    ),
    (
        "ca",
        "el la els les un una de del i o que en no es és són per amb al als d l n s on com quan què qui jo tu ell ella nosaltres \
            molt bé bon dia gràcies si us plau avui demà ahir sempre també aquí estació vull té hi ha està aquest aquesta meva meu",
    ),
    (
        "hu",
        "a az és nem hogy van volt is egy ez meg csak de ha már én te ő mi ti ők hol mikor miért ki mit mennyi jó köszönöm \
            kérem igen nagyon ma holnap tegnap most itt ott kérek",
    ),
    (
        "vi",
        "là và của có không tôi bạn anh em này đó ở đâu gì khi nào sao ai một rất tốt cảm ơn xin chào vâng hôm nay mai tên",
    ),
    (
        "id",
        "dan yang di ke dari ini itu dengan untuk tidak saya kamu anda dia kami kita mereka ada apa mana kapan mengapa siapa \
            bagaimana akan sudah bisa sangat baik terima kasih selamat hari besok mau berapa",
    ),
    (
        "hr",
        "i je se na u da to ne za su s od sam si ga ali što šta kako gdje gde kada zašto tko ko ja ti on ona mi vi oni moj \
            moja hvala molim dobar dan danas sutra jučer juče ovdje ovde vrlo veoma želim koliko košta bilo biti",
    ),
    (
        "ru",
        "и в не на я что он с это как а но она они мы вы ты то все всё по у из за от так же бы о к до для вот меня мне тебя \
            тебе его её ему нас вас вам нам им их мой моя моё мои твой твоя ваш наш где когда почему зачем кто чего сколько \
            какой какая который есть был была было были быть буду будет нет да или если только уже ещё еще очень хорошо \
            спасибо пожалуйста здравствуйте привет сегодня завтра вчера сейчас здесь там тут можно могу может хочу хочешь \
            надо нужно себя этот эта эти чтобы ли",
    ),
    (
        "uk",
        "і в не на я що він з це як а але вона вони ми ви ти то все по у із за від так же б до для ось мене мені тебе де коли \
            чому хто скільки який є був була було були бути буде ні або якщо тільки вже ще дуже добре дякую будь ласка привіт \
            сьогодні завтра вчора зараз тут там можна можу хочу знаходиться",
    ),
    (
        "bg",
        "и в не на аз че той с това как а но тя те ние вие ти всичко по у от за така би до ме ми те му къде кога защо кой колко \
            какво е съм си са сме сте беше бил ще да или ако само вече още много добре благодаря моля здравейте днес утре вчера \
            сега тук там мога искам се",
    ),
    (
        "sr",
        "и у је не на ја шта он са то како а али она они ми ви ти све по из за од тако би до мене мени где када зашто ко колико \
            сам си су смо сте био била било бити да или ако само већ још врло добро хвала молим здраво данас сутра јуче сада овде тамо могу",
    ),
    (
        "hi",
        "है हैं हूँ हूं था थी थे का की के में से को पर और यह ये वह वे नहीं क्या कौन कब कहाँ कहां क्यों कैसे कैसा कितना कितने कितनी आप मैं \
            हम तुम मुझे मेरा मेरी मेरे आपका आपकी आपके तुम्हारा हमारा उसका इसका एक दो भी ही तो अगर लेकिन या कल आज अब यहाँ वहाँ बहुत \
            अच्छा अच्छी धन्यवाद नमस्ते कृपया हो होता होती कर करना करता करते करती रहा रही रहे चाहिए सकते सकता सकती गया गई",
    ),
    (
        "mr",
        "आहे आहेत होता होती होते आणि मी तू तो ती ते आम्ही तुम्ही माझे माझा माझी तुझे तुझा काय कोण कधी कुठे का कसे किती नाही मध्ये हे हा ही \
            एक पण खूप चांगले धन्यवाद नमस्कार आज उद्या मला तुला",
    ),
    (
        "ne",
        "छ छन् हो म तपाईं तिमी हामी उनी यो त्यो के को कहिले कहाँ किन कसरी कति छैन होइन र पनि मेरो तिम्रो धेरै राम्रो धन्यवाद नमस्ते आज भोलि मलाई",
    ),
];
